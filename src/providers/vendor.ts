import { address, type Kind, type SettingsTable, type ValuesOf, withDefault } from '../config/kinds.ts'
import type { Rate } from '../outbound/pace.ts'
import type { Connect, VendorClient } from './vendor-client.ts'

/** What a vendor can promise. docs/providers.md says the same in words; a test compares the two. */
export interface Promises {
  /** Whether one of two simultaneous creations gets "existing"; if not, there is only a lookup before the creation. */
  readonly newness: 'atomic' | 'best effort'
  /** What "existing" means: in the whole account, or on the configured list. */
  readonly scope: 'account' | 'list'
  /** Whether a contact that we created can be told from one that was there before. */
  readonly recognisesOwn: boolean
  /** Milliseconds for which a repeated start of the automation is recognised and ignored; null: there is none to start. */
  readonly repeatable: number | null
  /** Whether its API erases one person: at once, or some time after it has accepted that. */
  readonly removal: 'at once' | 'later' | 'by hand'
}

/** Everything that we know of a vendor. Configuration, help and documentation read its table of settings. */
export interface Vendor<Table extends SettingsTable = SettingsTable> {
  readonly title: string
  /** Their names begin with the vendor's. */
  readonly settings: Table
  readonly rate: Rate
  readonly promises: Promises
  /** The settings that name what contacts are added to, which those that the vendor knew before may join too. */
  readonly joins: readonly string[]
  /** What is wrong with settings that are each allowed. */
  contradiction?(settings: ValuesOf<Table>, eventName: string): string | null
  client(settings: ValuesOf<Table>, connect: Connect): VendorClient
}

export const SECOND = 1_000
export const MINUTE = 60_000
export const DAY = 86_400_000
export const ALWAYS = Number.POSITIVE_INFINITY

/** The address of the API, which a region, a proxy or a test may change. */
export const base = (url: string) =>
  withDefault(address, url, 'Address of the API.', 'Leave it, unless your account is told another one.')

/** The address of a server of the operator's own, to which we add the rest of the path. */
export const site = (ending: string): Kind<string> => ({
  allowed: `${address.allowed}, and without ${ending} at its end`,
  read(text) {
    const url = address.read(text)
    return url?.endsWith(ending) ? undefined : url
  },
})

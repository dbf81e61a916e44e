import { address, type Kind, type SettingsTable, type ValuesOf, withDefault } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import type { Call, CallerSettings } from '../outbound/caller.ts'
import type { Rate } from '../outbound/pace.ts'
import type { Refused } from '../outbound/reply.ts'
import type { Contact, WaitlistEvent } from '../signup/contact.ts'
import type { DeliveryResult, Failure } from '../waitlist/ports/destination.ts'
import type { Creation, Removal } from '../waitlist/ports/provider.ts'
import type { Answer, Meaning } from './vendor-client.ts'

/** What a vendor can promise: the table of docs/providers.md. */
export interface Promises {
  /** Whether one of two simultaneous creations gets "existing"; if not, a lookup before the creation tells, or nothing. */
  readonly newness: 'atomic' | 'best effort' | 'none'
  /** What "existing" means: in the whole account, or on the configured list. */
  readonly scope: 'account' | 'list'
  /** Whether a contact that we created can be told from one that was there before. */
  readonly recognisesOwn: boolean
  /** Milliseconds for which a repeated start of the automation is recognised and ignored; null: there is none to start. */
  readonly repeatable: number | null
  /** Whether the name of an event starts its automation, which can then be started by an invitation, too. */
  readonly namesEvents: boolean
  /** Whether its API erases one person: at once, or some time after it has accepted that. */
  readonly removal: 'at once' | 'later' | 'by hand'
}

/** The settings that name events, and their values. */
export type EventNames = Readonly<Record<'EVENT_NAME' | 'INVITED_EVENT_NAME', string>>

/** `PROVIDER_FIELDS`: what the operator sets on each new contact. */
export type Fields = Readonly<Record<string, string>>

/** Everything that we know of a vendor. Configuration, help and documentation read its table of settings. */
export interface Vendor<Table extends SettingsTable = SettingsTable> {
  readonly title: string
  /** Their names begin with the vendor's. */
  readonly settings: Table
  readonly rate: Rate
  readonly promises: Promises
  /** Whether a new contact can be given `Fields`. */
  readonly takesFields?: true
  /** What is wrong with settings that are each allowed. */
  contradiction?(settings: ValuesOf<Table>, events: EventNames): string | null
  client(settings: ValuesOf<Table>, connect: Connect, fields: Fields): VendorClient
}

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

/**
 * One vendor: builds requests and judges answers, and nothing else. Contacts' addresses are in lower case. The promises of
 * `Provider` (waitlist/ports/provider.ts) hold for these members too.
 */
export interface VendorClient {
  createContact(contact: Contact, doubt: boolean, attempt: Attempt): Promise<Creation>
  /**
   * Adds a contact that the vendor knew before to the lists, tags and the like that the settings name, and changes nothing
   * else about it. May be repeated. Null: done. Refused: others may be added, and this one stays as it is. Absent: the
   * settings name nothing to join.
   */
  readonly join?: ((known: Contact, attempt: Attempt) => Promise<Failure | Refused | null>) | undefined
  /** Whether a contact of ours joins by this call as well, as the last step. If not, its creation takes care of that. */
  readonly joinsLast?: boolean
  /** Null: the settings name none, or the vendor starts it by itself. */
  readonly automation: ((event: WaitlistEvent, attempt: Attempt) => Promise<DeliveryResult>) | null
  /** The call that erases is preferred to one that unsubscribes or archives. */
  remove(email: string, attempt: Attempt): Promise<Removal>
  /** Tries the key and everything that the settings name, and changes nothing. */
  check(attempt: Attempt): Promise<Failure | null>
}

/** Makes a caller with the vendor's documented rate, or with `rate` for an address that has its own. */
export type Connect = (
  settings: Omit<CallerSettings, 'rate'> & { readonly rate?: Rate; readonly means?: Meaning },
) => VendorCaller

export interface VendorCaller {
  call(call: Call, attempt: Attempt): Promise<Answer>
  get(to: string, path: string, attempt: Attempt, query?: Call['query']): Promise<Answer>
  post(to: string, path: string, body: unknown, attempt: Attempt): Promise<Answer>
}

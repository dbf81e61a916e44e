import {
  address,
  line,
  listOf,
  type Reader,
  type SettingsTable,
  type ValuesOf,
  whole,
  withDefault,
} from '../config/readers.ts'
import type { ProviderContact, Removal } from '../delivery/destination.ts'
import type { Call, Reply } from '../http-client/call.ts'
import type { Contact, WaitlistEvent } from '../signup/contact.ts'

/** `PROVIDER_FIELDS`: what the operator sets on each new contact. */
export type Fields = Readonly<Record<string, string>>

/** An email tool. Each method may also return a reply that it does not know better than `call`. */
export interface Vendor<Table extends SettingsTable = SettingsTable> {
  readonly title: string
  /** Their names begin with the vendor's. */
  readonly settings: Table
  /** Milliseconds for which a repeated event is recognised and ignored; 0: never. */
  readonly repeatable: number
  /** Whether the name of an event starts its automation, so that an invitation can start one, too. */
  readonly namesEvents: boolean
  /** Whether a new contact can be given `Fields`. */
  readonly takesFields?: true
  connect(settings: ValuesOf<Table>): Pick<Required<Call>, 'headers'> & { readonly base: string }
  /** What answers with a 2xx if the key, and what the settings name, are good. */
  check(settings: ValuesOf<Table>): readonly string[]
  /** Adds the address if it is new there; never changes an existing contact. The address is in lower case. */
  create(contact: Contact, api: Api<Table>): Promise<ProviderContact | Reply>
  /** Adds a contact of ours to what takes calls of its own; may be repeated. */
  complete?(contact: Contact, api: Api<Table>): Promise<Reply | null>
  /** Whether a refused creation says that the address is not valid. */
  refusesAddress?(reply: Reply): boolean
  /** Starts the owner's automation. */
  notify?(event: WaitlistEvent, api: Api<Table>): Promise<Reply>
  /** Whether the settings name an automation; by default, always. */
  notifies?(settings: ValuesOf<Table>): boolean
  /** Erases the contact with this very address. A 2xx means removed, a 404 absent. */
  remove(email: string, api: Api<Table>): Promise<Removal | Reply>
}

/** The calls of one attempt. Paths follow the base. */
export interface Api<Table extends SettingsTable = SettingsTable> {
  readonly settings: ValuesOf<Table>
  readonly fields: Fields | undefined
  get(action: string, path: string): Promise<Reply>
  post(action: string, path: string, body?: unknown, headers?: Call['headers']): Promise<Reply>
  send(call: Omit<Call, 'url' | 'signal' | 'secrets'> & { readonly path: string }): Promise<Reply>
}

export const DAY = 86_400_000
export const ALWAYS = Number.POSITIVE_INFINITY

export const number: Reader<number> = { ...whole(1, 10 ** 15 - 1), allowed: 'must be a whole number above 0' }

/** Ids, or what people call something in a tool, such as a tag. */
export const names: Reader<readonly string[]> = {
  allowed: 'must be a list of at most 20 names of at most 100 characters, separated by commas',
  read: text => listOf({ read: item => line(100).read(item) || undefined }, text, 20),
}

export const numbers: Reader<readonly number[]> = {
  allowed: 'must be a list of at most 20 whole numbers above 0, separated by commas',
  read: text => listOf(number, text, 20),
}

const FIELD = /^(?!__proto__=)([^=\p{Cc}]{1,100}(?<!\s))=(\P{Cc}{1,200})$/u

/** Reads PROVIDER_FIELDS. Names and values may have spaces, but no comma. */
export const providerFields: Reader<Fields> = {
  allowed: 'must be a list of at most 20 name=value with different names, separated by commas',
  read(text) {
    const all = listOf({ read: item => FIELD.exec(item)?.slice(1) }, text, 20)
    const values: Fields | undefined = all && Object.fromEntries(all)
    return Object.keys(values ?? {}).length === all?.length ? values : undefined
  },
}

/** The address of the API, which a region, a proxy or a test may change. */
export const base = (url: string) =>
  withDefault(address, url, 'Address of the API.', 'Leave it, unless your account has another one.')

/** An identifier: a word of at most 200 visible ASCII characters, or a whole number. */
export function idOf(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && /^[\x21-\x7E]{1,200}$/.test(value) ? value : undefined
}

/** A contact, if the reply is a success with its identifier. */
export function contactIn(is: 'created' | 'existing', reply: Reply, id: unknown): ProviderContact | Reply {
  const providerId = idOf(id)
  return reply.is === 'ok' && providerId !== undefined ? { is, providerId } : reply
}

export const query = (values: Readonly<Record<string, string>>): string => `?${new URLSearchParams(values)}`

/** Vendors keep a first and a last name; most people type one or two words. */
export function splitName(name: string): { readonly first: string; readonly last: string | undefined } {
  const [first = name, ...rest] = name.split(/\s+/)
  return { first, last: rest.length === 0 ? undefined : rest.join(' ') }
}

import type { Caller, CallerSettings } from '../outbound/caller.ts'
import type { Rate } from '../outbound/pace.ts'
import type { Contact, JoinedEvent } from '../waitlist/contact.ts'
import type { Creation, Failure, Told } from '../waitlist/ports.ts'

/**
 * One vendor: builds requests and judges answers, and nothing else. Addresses of contacts are in lower case. What every
 * `Provider` promises (waitlist/ports.ts) holds for these members too.
 */
export interface VendorClient {
  createContact(contact: Contact, doubt: boolean, deadline: AbortSignal): Promise<Creation>
  /** Null: the settings name none, or the vendor starts it by itself. */
  readonly automation: ((event: JoinedEvent, deadline: AbortSignal) => Promise<Told>) | null
  readonly check?: (deadline: AbortSignal) => Promise<Failure | null>
}

/** Makes a caller with the vendor's documented rate, or with `rate` where one of its addresses has another. */
export type Connect = (settings: Omit<CallerSettings, 'rate'> & { readonly rate?: Rate }) => Caller

/** The vendors keep a first name and a rest; most people's names are one or two words. */
export function splitName(name: string): { readonly first: string; readonly last: string | undefined } {
  const [first = name, ...rest] = name.split(/\s+/)
  return { first, last: rest.length === 0 ? undefined : rest.join(' ') }
}

/** Milliseconds by which two clocks may differ when a contact's age says whether it is ours. */
const CLOCKS = 60_000

/**
 * Whether a contact that the vendor says it made at `created` can be one that an attempt of ours made: it is not older
 * than the signup. Undefined: the time makes no sense.
 */
export function isYoungerThanSignup(created: string | undefined, contact: Contact): boolean | undefined {
  const time = Date.parse(created ?? '')
  return Number.isNaN(time) ? undefined : time >= contact.createdAt.getTime() - CLOCKS
}

/** Whether a refusal is about the form of the address, and not about a mail that the owner has yet to set up. */
export const saysInvalidAddress = (said: string | undefined): boolean =>
  /e-?mail.*(?:invalid|valid|format|blank|empty)|invalid.*e-?mail/i.test(said ?? '')

import type { Attempt } from '../outbound/attempt.ts'
import type { Call, CallerSettings } from '../outbound/caller.ts'
import type { Rate } from '../outbound/pace.ts'
import type { DeliveryResult, Failure } from '../waitlist/ports/destination.ts'
import type { Creation, Removal } from '../waitlist/ports/provider.ts'
import type { Contact, JoinedEvent } from '../waitlist/rules/contact.ts'
import type { Answer, Refused } from './answer.ts'

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
  readonly automation: ((event: JoinedEvent, attempt: Attempt) => Promise<DeliveryResult>) | null
  /** Milliseconds for which a repeated start is recognised, if the settings choose an API that promises less than others. */
  readonly repeatable?: number
  /** The call that erases is preferred to one that unsubscribes or archives. */
  remove(email: string, attempt: Attempt): Promise<Removal>
  /** Tries the key and everything that the settings name, and changes nothing. */
  check(attempt: Attempt): Promise<Failure | null>
}

/** Makes a caller with the vendor's documented rate, or with `rate` for an address that has its own. */
export type Connect = (settings: Omit<CallerSettings, 'rate'> & { readonly rate?: Rate }) => VendorCaller

export interface VendorCaller {
  call(call: Call, attempt: Attempt): Promise<Answer>
}

/** Vendors keep a first and a last name; most people type one or two words. */
export function splitName(name: string): { readonly first: string; readonly last: string | undefined } {
  const [first = name, ...rest] = name.split(/\s+/)
  return { first, last: rest.length === 0 ? undefined : rest.join(' ') }
}

/** Calls of one attempt that may be under way at once. Every vendor allows as many. */
const AT_ONCE = 5

/**
 * Does the same for each of several lists, tags and the like: some at once, since one after another may take longer than
 * the timeout, in every attempt. Resolves with the first failure, after which nothing is begun; null: all are done.
 */
export async function forAll<Item, Why>(items: readonly Item[], work: (item: Item) => Promise<Why | null>) {
  const failures: Why[] = []
  const left = items.values()
  async function proceed(): Promise<void> {
    for (const item of left) {
      const failure = await work(item)
      if (failure !== null) failures.push(failure)
      if (failures.length > 0) return
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, proceed))
  return failures[0] ?? null
}

/** Milliseconds by which two clocks may differ when the age of a contact shows whether it is ours. */
const CLOCKS = 60_000

/**
 * Whether a contact that the vendor created at `created` can be ours: it is not older than the signup. Undefined: the time
 * makes no sense.
 */
export function isYoungerThanSignup(created: string | undefined, contact: Contact): boolean | undefined {
  const time = Date.parse(created ?? '')
  return Number.isNaN(time) ? undefined : time >= contact.createdAt.getTime() - CLOCKS
}

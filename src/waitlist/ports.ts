/** Everything the waitlist asks of the world. The promise of each part stands on its interface. */

import type { Contact, JoinedEvent } from './contact.ts'
import type { Signup } from './signup.ts'

/** What became of a signup in the store. `contactId` is the store's own id. */
export type Admission =
  | { readonly is: 'listed now'; readonly contactId: string }
  | { readonly is: 'already listed' }
  /** Recorded now, and leased to the caller, who asks the provider. */
  | { readonly is: 'pending now'; readonly registration: Registration }
  /** Recorded earlier; the provider has not answered yet. */
  | { readonly is: 'still pending'; readonly contactId: string }

/** One attempt to tell the provider of a pending contact. Whoever has the token may conclude it, nobody else. */
export interface Registration {
  readonly contact: Contact
  readonly token: string
  /** Whether an earlier attempt may have added the contact at this provider without our knowing. */
  readonly doubt: boolean
  /** Attempts before this one. */
  readonly attempts: number
}

export type Beginning =
  | { readonly is: 'ours'; readonly registration: Registration }
  /** Somebody else is asking the provider at this moment. */
  | { readonly is: 'taken' }
  | { readonly is: 'listed' }
  /** The provider refused the address meanwhile: it is not on the list any more. */
  | { readonly is: 'gone' }

interface Again {
  readonly wait: number
  readonly doubt: boolean
  readonly why: string
  /** Nobody was called, so the attempt does not count. */
  readonly uncalled?: true
}

/** How an attempt to register ended. */
export type Conclusion =
  /** Listed; its event and deliveries are born with it. */
  | { readonly is: 'created'; readonly providerId?: string }
  /** Listed, without an event: the provider had it before. */
  | { readonly is: 'existing'; readonly providerId?: string }
  /** To be tried again in `wait` milliseconds. */
  | ({ readonly is: 'pending' } & Again)
  /** The address is taken off the list. */
  | { readonly is: 'refused' }

/** One event for one destination, leased to whoever has the token. */
export interface Delivery {
  readonly number: number
  readonly token: string
  readonly event: JoinedEvent
  /** Attempts before this one. */
  readonly attempts: number
  /** Whether an earlier attempt may have arrived without our knowing. */
  readonly doubt: boolean
}

/** How an attempt to deliver ended. */
export type Settlement =
  | { readonly is: 'delivered' }
  /** To be tried again in `wait` milliseconds. */
  | ({ readonly is: 'waiting' } & Again)
  | { readonly is: 'abandoned'; readonly why: string }

/**
 * Milliseconds for which a registration or a delivery is leased. Longer than any attempt, so two are never under way;
 * what a dead process held is taken over when it is over, and found by others within a minute in all.
 */
export const LEASE = 55_000

/**
 * Keeps contacts, their events and the deliveries of those. Every method rejects with `StoreUnavailable` when nothing
 * was promised; each may then be called again, which is safe.
 */
export interface Store {
  /**
   * Records a signup in one atomic step and resolves only when that step is synced to disk. Without a provider the
   * contact, its event and its deliveries are stored together, or nothing is; with one the contact is stored as pending.
   * Of any number of simultaneous signups with the same address (ASCII case-insensitive) one is `listed now` or
   * `pending now`; the name and spelling of the first are kept.
   */
  admit(signup: Signup): Promise<Admission>

  /** Leases one pending contact for an attempt at `provider`. Doubt about another provider is none about this one. */
  begin(contactId: string, provider: string): Promise<Beginning>

  /** Leases up to `most` pending contacts, the longest due first; `early`: also such as are not due yet. */
  beginDue(provider: string, most: number, early: boolean): Promise<readonly Registration[]>

  /** Ends an attempt in one atomic step. False: the lease was lost to another attempt, and nothing was changed. */
  conclude(registration: Registration, conclusion: Conclusion): Promise<boolean>

  /** Makes everything that is pending, and not leased, due now. */
  hasten(): Promise<void>

  /** Leases up to `most` deliveries to `destination` that are due, the longest due first. */
  claim(destination: string, most: number): Promise<readonly Delivery[]>

  /** Ends an attempt. False: the lease was lost, and nothing was changed. */
  settle(delivery: Delivery, settlement: Settlement): Promise<boolean>

  /** Resolves when the store could take a signup at this moment; changes nothing. */
  check(): Promise<void>

  /** Resolves, if ever, when what is written can no longer be trusted. The process must end; a restart recovers. */
  readonly failure: Promise<Error>

  /** Completes what was accepted, then lets go of every resource. Later calls of `admit` are refused. */
  close(): Promise<void>
}

/** A store says no for now: overloaded, out of space, busy or gone. The visitor is answered "temporarily unavailable". */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** A part cannot be opened as configured. The message says what is wrong and what to do; it needs no stack. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen'
}

/** What is left to a client after one attempt, in numbers that fit the `RateLimit` and `Retry-After` fields. */
export interface Allowance {
  readonly admitted: boolean
  /** Attempts left at this moment. */
  readonly remaining: number
  /** Whole seconds, at least 1: after a refusal, waiting this long succeeds; otherwise, until one more is left. */
  readonly seconds: number
}

/** Counts attempts per client. */
export interface Limiter {
  /** Counts one attempt of `client` (an opaque key). A refused attempt costs nothing. */
  take(client: string): Promise<Allowance>
  close(): Promise<void>
}

/**
 * Why a call to the outside came to nothing. `why` is for the log: no address, no name, no secret. Milliseconds in
 * `retryAfter` are what the other side asked for.
 */
export type Failure =
  /** Certainly without effect: no connection, too many requests, our own bounds. */
  | {
      readonly is: 'unreached'
      readonly why: string
      readonly retryAfter?: number
      /** Our own bounds kept the call back, which says nothing of the other side. */
      readonly uncalled?: true
    }
  /** It may have taken effect: cut off or timed out after it was sent, a server error, an answer that makes no sense. */
  | { readonly is: 'unclear'; readonly why: string; readonly retryAfter?: number }
  /** Our key or our settings are refused, without effect: nothing changes until the operator does something. */
  | { readonly is: 'misconfigured'; readonly why: string }

/** Told of a contact, the provider answers with one of these. */
export type Creation =
  | { readonly is: 'created'; readonly providerId?: string }
  /** `ours`: whether an attempt of ours made it, where there was doubt and the provider can tell. */
  | { readonly is: 'existing'; readonly providerId?: string; readonly ours?: boolean }
  /** The address is refused for good. `reason` completes "the email provider does not accept this address: …". */
  | { readonly is: 'refused'; readonly reason: string }
  | Failure

/** The upstream tool that holds the list for its owner. */
export interface Provider {
  readonly name: string

  /**
   * Adds the address if it is new there, and never changes a contact that exists.
   *
   * `doubt`: an earlier call for this contact may have taken effect. The provider then tells, where it can, whether an
   * existing contact is that one. Never rejects.
   */
  createContact(contact: Contact, doubt: boolean, deadline: AbortSignal): Promise<Creation>

  /** Starts the owner's automation; null where the settings name none, or the provider starts it by itself. */
  readonly automation: Destination | null

  /** Tries the credentials, where that is cheap: null when they are good. Changes nothing and never rejects. */
  readonly check?: (deadline: AbortSignal) => Promise<Failure | null>

  close(): Promise<void>
}

/** What a destination said. `gone`: the receiver does not exist any more (410), nothing more should be sent. */
export type Told = { readonly is: 'delivered' } | { readonly is: 'gone'; readonly why: string } | Failure

/** Who hears that a contact joined: the provider's automation, a webhook. */
export interface Destination {
  readonly name: string

  /** Milliseconds for which a repeated event is recognised by its id and changes nothing: 0 not at all. */
  readonly repeatable: number

  /** Milliseconds that one attempt may take, less than the lease. */
  readonly timeout: number

  /** Attempts that may be under way at once. */
  readonly concurrency: number

  /** Tells of one event, always with the same id. Never rejects. */
  deliver(event: JoinedEvent, deadline: AbortSignal): Promise<Told>
}

/** Where the waitlist says what its operator should know. Never given an address, a name or a secret. */
export interface Log {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

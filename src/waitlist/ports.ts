/** Everything the waitlist asks of the world. The promise of each part stands on its interface. */

import type { JoinedEvent } from './contact.ts'
import type { Signup } from './signup.ts'

/** What became of a signup in the store. */
export type Admission = { readonly is: 'listed now'; readonly contactId: string } | { readonly is: 'already listed' }

/** Keeps contacts and their events. */
export interface Store {
  /**
   * Records a signup in one atomic step and resolves only when that step is synced to disk: the contact and its event
   * together, or neither. Of any number of simultaneous signups with the same address (ASCII case-insensitive) exactly
   * one is `listed now`; the name and spelling of the first are kept.
   *
   * @throws {StoreUnavailable} nothing was promised: the signup may be sent again, which is safe.
   */
  admit(signup: Signup): Promise<Admission>

  /**
   * Resolves when the store could take a signup at this moment; changes nothing.
   *
   * @throws {StoreUnavailable} with the reason, in words for the log.
   */
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

/** The result of one attempt at the limiter, in numbers that fit the `RateLimit` and `Retry-After` fields. */
export interface Attempt {
  readonly admitted: boolean
  /** Attempts left at this moment. */
  readonly remaining: number
  /** Whole seconds, at least 1: after a refusal, waiting this long succeeds; otherwise, until one more is left. */
  readonly seconds: number
}

/** Counts attempts per client. */
export interface Limiter {
  /** Counts one attempt of `client` (an opaque key). A refused attempt costs nothing. */
  take(client: string): Promise<Attempt>
  close(): Promise<void>
}

/** Told of a contact, the provider answers with one of these; it never changes a contact that it already had. */
export type Creation =
  | { readonly is: 'created'; readonly contactId?: string }
  | { readonly is: 'existing'; readonly contactId?: string }

/** The upstream tool that holds the list for its owner. */
export interface Provider {
  readonly name: string
  /**
   * Adds the address if it is new there.
   *
   * @throws when the answer is not known or is a refusal; the contact then stays `pending`.
   */
  createContact(signup: Signup, deadline: AbortSignal): Promise<Creation>
}

/** Who hears that a contact joined: the provider's automation, a webhook. */
export interface Destination {
  readonly name: string
  /**
   * Tells of one event. May be called again for the same event, always with the same contact id, so that a receiver
   * can drop what it has seen.
   *
   * @throws when the receiver did not confirm it.
   */
  deliver(event: JoinedEvent, deadline: AbortSignal): Promise<void>
}

import type { HoldReason } from '../rules/contact.ts'
import type { Signup } from '../rules/signup.ts'
import type { Confirmations } from './confirmations.ts'
import type { Invitations } from './invitations.ts'
import type { Delivery, Outbox } from './outbox.ts'
import type { Upkeep } from './upkeep.ts'

/** What became of a signup in the store. */
export type Admission =
  /** `contactId` is the store's own id. */
  | { readonly is: 'listed now'; readonly contactId: string }
  | { readonly is: 'already listed' }
  /** Recorded now. Its hand-over is leased to the caller. */
  | { readonly is: 'pending now'; readonly delivery: Delivery }
  /** Recorded now and held: it goes no further until the operator releases it. */
  | { readonly is: 'held now'; readonly reason: HoldReason }
  /** Recorded and held earlier. */
  | { readonly is: 'still held' }
  /**
   * Recorded, now or earlier: it goes no further until it is confirmed. `asked`: a mail that asks for it is stored now, in
   * the same step: for a new signup, and again at most three times, once in ten minutes, unless the last one waits yet.
   * `contactId` is the store's own id.
   */
  | { readonly is: 'unconfirmed'; readonly contactId: string; readonly asked: boolean }
  /** Its proof was used for another address, so it was not looked at. */
  | { readonly is: 'spent' }
  /** Recorded earlier; its hand-over has not ended. `contact` is the argument for `claim`. */
  | { readonly is: 'still pending'; readonly contact: number }

/**
 * What a visitor asks of the store. A method that rejects with `StoreUnavailable` has promised nothing, and may safely be
 * called again; so everywhere in the store.
 */
export interface Signups {
  /**
   * Records a signup in one atomic step and resolves only when that step is synced to disk. Without a provider, the
   * contact is stored with its event and deliveries; with one, as pending, with its hand-over; where addresses are confirmed
   * first, as unconfirmed, with the mail that asks for it. Of any number of simultaneous signups with the same address
   * (compared without ASCII case) exactly one is stored, and its name and spelling are kept.
   */
  admit(signup: Signup): Promise<Admission>

  /**
   * Whether signups arrive faster than they can be stored. To refuse one then, before `admit`, keeps the others fast.
   */
  isBehind(): boolean

  /**
   * Resolves when a signup could be committed now. If none was within the last second, it finds out by a commit that leaves
   * nothing to see.
   */
  check(): Promise<void>
}

/** The store is overloaded, out of space, busy or gone. The visitor is told "temporarily unavailable". */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** Keeps contacts and their deliveries. */
export interface Store extends Signups, Outbox, Upkeep, Invitations, Confirmations {
  /** Resolves if writes can no longer be trusted. The process must then end; a restart recovers. */
  readonly failure: Promise<Error>

  /**
   * Refuses every signup that waits for its commit, and every later one, since a stop cannot wait any longer. Those under
   * way may yet be stored.
   */
  refuse(): void

  /** Completes what was accepted, then releases every resource. Later calls of `admit` are refused. */
  close(): Promise<void>
}

import type { Contact, EventKind } from '../rules/contact.ts'

/** What is attempted and settled as one, leased to the holder of the token. */
export interface Leased {
  readonly number: number
  readonly token: string
  /** Earlier attempts, without those that are `uncounted` (`Settlement`). */
  readonly attempts: number
  /** Whether an earlier attempt may have taken effect without our knowing. */
  readonly doubt: boolean
}

/** One contact for one destination: to be handed over to it, or with an event for it. */
export interface Delivery extends Leased {
  /** Pending in a hand-over; otherwise it has the event, or is unconfirmed and to be asked. */
  readonly contact: Contact
  /** A hand-over is a part of joining. */
  readonly event: EventKind
}

/** Due deliveries to one channel, leased as one. */
export interface Digest {
  readonly channel: string
  readonly token: string
  /** At least one, the longest due first. */
  readonly deliveries: readonly number[]
  /** The fewest of any of them. */
  readonly attempts: number
  /** Of how many of them there is doubt. */
  readonly doubtful: number
  /** How many of them are of invitations. */
  readonly invited: number
  /** The names of the first who joined, `NAMED` at most. */
  readonly names: readonly string[]
}

/** Names in a digest. */
export const NAMED = 10

/** How an attempt ended. */
export type Settlement =
  | { readonly is: 'delivered' }
  /** To be tried again in `wait` milliseconds. */
  | {
      readonly is: 'waiting'
      readonly wait: number
      readonly doubt: boolean
      readonly why: string
      /** The delivery is not to blame: nothing was sent, or the destination is out. */
      readonly uncounted?: boolean | undefined
    }
  | { readonly is: 'abandoned'; readonly why: string }
  /** A hand-over: the contact is listed. `joined`: its event and that event's deliveries are created too. */
  | { readonly is: 'listed'; readonly joined: boolean; readonly providerId?: string | undefined }
  /** A hand-over: the provider refuses the address for good, so the contact is taken off the list. */
  | { readonly is: 'removed'; readonly why: string }

/** How an attempt at a digest ended: the same for all its deliveries. */
export type DigestSettlement = Extract<Settlement, { readonly is: 'delivered' | 'waiting' | 'abandoned' }>

/**
 * Milliseconds for which a delivery is leased. Longer than any attempt, so two are never under way at once, unless the
 * store's clock is set meanwhile and another process takes over. What a dead process held is due again when its lease
 * ends, so others find it within a minute.
 */
export const LEASE = 55_000

/** What deliveries ask of the store. */
export interface Outbox {
  /**
   * Leases up to `most` due deliveries to `destination`, the longest due first. With `contact`: only this contact's
   * delivery, due or not, unless it is leased.
   */
  claim(destination: string, most: number, contact?: number): Promise<readonly Delivery[]>

  /**
   * Ends an attempt in one atomic step. False: another attempt took over the lease or the contact was erased, and nothing was
   * changed; or it was ended before, by a try whose answer was lost.
   */
  settle(delivery: Delivery, settlement: Settlement): Promise<boolean>

  /**
   * Leases up to `most` due deliveries to a channel as one digest, the longest due first, whatever doubt there is of them.
   * Null: none is due. A number: so many milliseconds must pass first, since a digest of this channel is under way, or
   * because fewer than `distance` milliseconds have passed since one was delivered or may have been. That holds for all
   * instances and across restarts, as long as the store's clock is not set.
   */
  claimDigest(channel: string, most: number, distance: number): Promise<Digest | number | null>

  /**
   * Ends an attempt at a digest in one atomic step. `distance` as for its claim; an attempt that certainly had no effect
   * keeps no distance. A delivery whose doubt was there before stays in doubt while it waits. False: as for `settle`.
   */
  settleDigest(digest: Digest, settlement: DigestSettlement, distance: number): Promise<boolean>
}

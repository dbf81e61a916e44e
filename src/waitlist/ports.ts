/**
 * Everything the waitlist needs from outside, each promise written on its interface. The glossary:
 *
 * - **signup**: what a visitor sends, parsed once into a `Signup`: trimmed and valid by construction.
 * - **contact**: a person on the list, one row: `pending` until the provider confirms it, then `listed`.
 * - **provider**: the upstream tool that holds the list for its owner. Optional.
 * - **event**: "this contact joined", a fact about the contact that is kept in its row. So a contact has at most one.
 * - **destination**: who is notified: the provider of the contact; its automation, a webhook or a channel of the event.
 * - **channel**: a chat that is told in one message of all who joined since the last one. Such a message is a **digest**:
 *   the deliveries that are due, claimed, attempted and settled as one. Digests keep a distance from each other.
 * - **held**: a contact that goes no further until the operator releases it. **hold reason**: the rule that says so.
 * - **mailbox**: where all spellings of an address end, if its provider says so.
 * - **challenge**: what a visitor's browser must solve before a signup is looked at. **proof**: the solution, verified.
 * - **delivery**: one contact for one destination: work that is *claimed* under a **lease**, attempted outside any
 *   transaction, *settled* with the lease's token, retried on a schedule, replayed by the operator.
 * - **hand-over**: the delivery of a contact to the provider. How it is settled decides what becomes of the contact.
 * - **doubt**: an earlier attempt may have taken effect without our knowing.
 * - **breaker**: whether a destination answers at all. An outage belongs to the destination, not to the row that met it.
 * - **store**: keeps contacts and deliveries. **limiter**: counts attempts per client.
 */

import type { Contact, HoldReason, JoinedEvent } from './contact.ts'
import type { Counts } from './counts.ts'
import type { Proof, Signup } from './signup.ts'

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
  /** Its proof was used for another address, so it was not looked at. */
  | { readonly is: 'spent' }
  /** Recorded earlier; its hand-over has not ended. `contact` is the argument for `claim`. */
  | { readonly is: 'still pending'; readonly contact: number }

/** What is attempted and settled as one, leased to the holder of the token. */
export interface Leased {
  readonly number: number
  readonly token: string
  /** Earlier attempts, without those that are `uncounted` (`Settlement`). */
  readonly attempts: number
  /** Whether an earlier attempt may have taken effect without our knowing. */
  readonly doubt: boolean
}

/** One contact for one destination. */
export interface Delivery extends Leased {
  /** Pending in a hand-over; otherwise listed, with its event. */
  readonly contact: Contact
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
  /** The names of the first contacts, `NAMED` at most. */
  readonly names: readonly string[]
}

/** Names in a digest. */
export const NAMED = 10

/** How an attempt ended. */
export type Settlement =
  | { readonly is: 'delivered' }
  /** To be tried again in `wait` milliseconds, at most `LONGEST_WAIT`. */
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

/**
 * Keeps contacts and their deliveries. A method that rejects with `StoreUnavailable` has promised nothing, and may
 * safely be called again.
 */
export interface Store {
  /**
   * Records a signup in one atomic step and resolves only when that step is synced to disk. Without a provider, the
   * contact is stored with its event and deliveries; with one, as pending, with its hand-over. Of any number of
   * simultaneous signups with the same address (compared without ASCII case) exactly one is `listed now` or `pending
   * now`, and its name and spelling are kept.
   */
  admit(signup: Signup): Promise<Admission>

  /**
   * Whether signups arrive faster than they can be stored. To refuse one then, before `admit`, keeps the others fast.
   */
  isBehind(): boolean

  /**
   * Leases up to `most` due deliveries to `destination`, the longest due first. With `contact`: only this contact's
   * delivery, due or not, unless it is leased.
   *
   * Times are those of the store's clock, which may be set back. What is due later than any wait allows is due now, or at
   * one of the next claims.
   */
  claim(destination: string, most: number, contact?: number): Promise<readonly Delivery[]>

  /** Ends an attempt in one atomic step. False: another attempt took over the lease or the contact was erased; nothing was changed. */
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

  /**
   * Takes a turn that instances share. False: one of them took it less than `distance` milliseconds ago, as long as the
   * store's clock is not set. With `latest`, also when nobody has taken it yet, or for more than `latest` milliseconds
   * after it was free: then the distance begins anew.
   */
  acquireInterval(name: string, distance: number, latest?: number): Promise<boolean>

  /**
   * Looks at the next `most` deliveries after number `after`, and deletes those that were delivered more than `age`
   * milliseconds ago, by the store's clock. `counting`: it deletes none, and says how many it would.
   */
  prune(age: number, after: number, most: number, counting?: boolean): Promise<Pruned>

  /**
   * Looks at the next `most` contacts after number `after`, and stores the mailbox behind each address (`mailboxOf`) where
   * another one is stored, or none. It waits for no signup, and signups hardly for it: a contact that is just being changed
   * is left as it is.
   */
  fillMailboxes(after: number, most: number): Promise<Filled>

  /** A random value that all instances share, 64 hexadecimal digits, made when it is first asked for. */
  secret(name: string): Promise<string>

  /** Counts the contacts that are listed now, without holding up signups. It may take seconds. */
  countListed(): Promise<number>

  /** Counts everything, of one moment, without holding up signups. It may take seconds. All who ask meanwhile share it. */
  counts(): Promise<Counts>

  /**
   * Resolves when a signup could be committed now. If none was within the last second, it finds out by a commit that leaves
   * nothing to see.
   */
  check(): Promise<void>

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

/** What was deleted of some deliveries. */
export interface Pruned {
  readonly looked: number
  readonly deleted: number
  /** How many of them had been given up. */
  readonly abandoned: number
  /** The number of the last that was looked at; null: there are no more. */
  readonly last: number | null
}

/** What was found of some contacts. */
export interface Filled {
  /** Contacts that have another mailbox now. */
  readonly filled: number
  /** The number of the last that was looked at; null: there are no more. */
  readonly last: number | null
}

/** The store is overloaded, out of space, busy or gone. The visitor is told "temporarily unavailable". */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** Only the operator can fix it. The message says what is wrong and what to do, so it is shown without a stack. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** What a limiter allows a client now, in numbers that fit the `RateLimit` and `Retry-After` fields. */
export interface RateDecision {
  readonly admitted: boolean
  /** Attempts left now. */
  readonly remaining: number
  /** Whole seconds, at least 1, until one more is left; after a refusal, until an attempt is admitted. */
  readonly seconds: number
}

/** Counts attempts per client, and per network of many clients, which has 16 times the quota of a client. */
export interface Limiter {
  /**
   * Counts one attempt of `client`, and of its `network` if it is in one (opaque keys; no client is named like a network).
   * It is admitted if both have some quota left. A refused attempt costs neither of them anything.
   */
  take(client: string, network?: string): Promise<RateDecision>
  close(): Promise<void>
}

/** Turns that all instances share, so that together they keep a vendor's documented rate. */
export interface SharedPace {
  /**
   * Takes a turn among all callers with the same `key`: at most `calls` begin within any `per` milliseconds. Resolves
   * with the milliseconds until the turn, or with null if they would exceed `longest`; then no turn is taken. Never
   * rejects: while turns cannot be shared, the wait is 0.
   */
  take(key: string, calls: number, per: number, longest: number): Promise<number | null>
  close(): Promise<void>
}

/**
 * Why an outbound call failed. `why` is for the log and contains no address, name or secret. `retryAfter` is the wait
 * that the other side asked for, in milliseconds.
 */
export type Failure =
  /** Certainly without effect: no connection, too many requests, our own limits. */
  | {
      readonly is: 'unreached'
      readonly why: string
      readonly retryAfter?: number | undefined
      /** Our own limits kept the call back, which says nothing about the other side. */
      readonly notSent?: true | undefined
      /** The other side answers, and holds back this delivery alone. */
      readonly alone?: true
    }
  /** It may have taken effect: cut off or timed out after it was sent, a server error, an answer that makes no sense. */
  | {
      readonly is: 'unclear'
      readonly why: string
      readonly retryAfter?: number | undefined
      /** Our own limits kept a later call back, after an earlier one took effect. */
      readonly notSent?: true | undefined
    }
  /** Our key or our settings are refused: the operator must fix them. */
  | {
      readonly is: 'misconfigured'
      readonly why: string
      /** Part of it took effect: the contact may exist already. */
      readonly tookEffect?: true
    }

/** The provider's answer to a contact. */
export type Creation =
  | { readonly is: 'created'; readonly providerId?: string | undefined }
  /** `ours`: in doubt, whether one of our attempts created it, if the provider can tell. */
  | { readonly is: 'existing'; readonly providerId?: string | undefined; readonly ours?: boolean | undefined }
  /** The address is refused for good. `reason` completes "the email provider does not accept this address: …". */
  | { readonly is: 'refused'; readonly reason: string }
  | Failure

/** What became of a person at the provider. */
export type Removal =
  /** Erased, or on the way: docs/providers.md says what the vendor keeps, and for how long. */
  | { readonly is: 'removed' }
  | { readonly is: 'absent' }
  /** Its API cannot erase, and nothing was done. `how` tells the owner what to do: "delete the contact in …". */
  | { readonly is: 'by hand'; readonly how: string }
  | Failure

/** The upstream tool that holds the list for its owner. */
export interface Provider {
  readonly name: string

  /** Milliseconds that one creation may take, not counting the wait in our own queue. */
  readonly timeout: number

  /**
   * Adds the address if it is new there, and never changes an existing contact.
   *
   * `doubt`: an earlier call for this contact may have taken effect. The provider then says, if it can, whether an
   * existing contact came from that call. `leave` aborts the call. `mayBegin` is called when its turn in our own queue
   * has come; if it returns false, nothing is sent. There, what is `forVisitor` goes before what nobody waits for. Never
   * rejects.
   */
  createContact(
    contact: Contact,
    doubt: boolean,
    leave: AbortSignal,
    mayBegin?: () => boolean,
    forVisitor?: boolean,
  ): Promise<Creation>

  /**
   * Erases the contact with this very address, ASCII case aside: from all lists there, with all that is known of it.
   * May be repeated. What no signup could have as its address is absent. `leave` aborts the call. Never rejects.
   */
  remove(email: string, leave: AbortSignal): Promise<Removal>

  /** Starts the owner's automation; null if the settings name none, or the provider starts it by itself. */
  readonly automation: Destination | null

  /** Tries the credentials and what the settings name: null when all is good. Changes nothing and never rejects. */
  check(leave: AbortSignal): Promise<Failure | null>

  close(): Promise<void>
}

/** What a solution is worth. */
export type Verdict =
  /** The store sees to it that a proof is good for one address. */
  | { readonly is: 'solved'; readonly proof: Proof }
  | { readonly is: 'unsolved'; readonly why: 'wrong' | 'expired' }
  /** The verifier could not be asked: the signup is held. `why` is for the log. */
  | { readonly is: 'unverified'; readonly why: string }
  /** Our own secret or settings are refused: no signup can be taken. `why` is for the log. */
  | { readonly is: 'misconfigured'; readonly why: string }

/** What puts a solution into a form, for pages that have one. */
export interface Widget {
  /** Whose it is. */
  readonly title: string
  /** HTML: what loads it. */
  readonly script: string
  /** HTML: its place in the form. What an operator has to fill in begins with `your-`. */
  readonly element: string
  /** What the field of its solution begins with until there is one; otherwise the field is empty. */
  readonly pending?: string
  /** JavaScript: makes it ask for a new solution. */
  readonly reset: string
}

/** Asks visitors to solve something that costs a bot more than them. */
export interface Challenge {
  readonly name: string

  /** The member of a signup's body that has the solution, as the vendor's widget names it. */
  readonly member: string

  /** For the documentation. */
  readonly widget: Widget

  /** A new challenge as JSON, where this service makes them; null: the widget gets them from its vendor. */
  readonly issue: (() => Promise<string>) | null

  /**
   * Judges a solution: 1..`SOLUTION_MAX` characters. `address` is that of the visitor, if it is known. `leave` aborts the
   * call. Never rejects.
   */
  verify(solution: string, address: string | null, leave: AbortSignal): Promise<Verdict>

  /** Tries secret and settings: null when all is good. Changes nothing and never rejects. */
  check(leave: AbortSignal): Promise<Failure | null>

  close(): Promise<void>
}

/** Characters of a solution. Vendors document up to 2,048; those of some are longer. */
export const SOLUTION_MAX = 8_192

/** A destination's answer to an event. */
export type DeliveryResult =
  | { readonly is: 'delivered' }
  /** The receiver no longer exists (410): nothing more should be sent. */
  | { readonly is: 'gone'; readonly why: string }
  /** It refuses this event for good; others may be accepted. */
  | { readonly is: 'refused'; readonly why: string }
  | Failure

/** Who is notified that a contact joined: the provider's automation, a webhook, a mail to the contact. */
export interface Destination {
  readonly name: string

  /** Milliseconds for which a repeated event is recognised by its id and ignored; 0: never. */
  readonly repeatable: number

  /** Milliseconds that one attempt may take once it has begun. */
  readonly timeout: number

  /** Attempts that may be under way at once. */
  readonly concurrency: number

  /** Sends one event, always with the same id. `leave` and `mayBegin` as for `Provider.createContact`. Never rejects. */
  deliver(event: JoinedEvent, leave: AbortSignal, mayBegin?: () => boolean): Promise<DeliveryResult>
}

/** A destination with settings and connections of its own, which the provider's automation is not. */
export interface OwnDestination extends Destination {
  /** Tries address and credentials: null when they are good. Tells of no contact and never rejects. */
  check(leave: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
}

/** What a channel is told. */
export type Alert =
  /** So many people joined since the last time. */
  | {
      readonly is: 'joined'
      readonly people: number
      /** How many of them an earlier message may have counted. */
      readonly doubtful: number
      /** The names of the first of them; none, if they are not to be told. */
      readonly names: readonly string[]
      /** Contacts on the list; null: they could not be counted. */
      readonly total: number | null
    }
  /** A destination does not answer, refuses our settings, or answers again. `called`: what people call it. */
  | { readonly is: Refusal | 'answering'; readonly called: string; readonly keeps: 'signups' | 'events' }
  /** Something has waited for a destination for more than an hour, or no longer. */
  | { readonly is: 'late' | 'on time'; readonly called: string }
  /** Signups are being held, or no more. */
  | { readonly is: 'holding' | 'not holding'; readonly held: Counts['held'] }
  /** The store takes no signups, or takes them again. */
  | { readonly is: 'refusing' | 'storing' }

/** Why nothing should wait for a destination: it does not answer, or refuses our settings. */
export type Refusal = 'unreachable' | 'misconfigured'

/** A chat that is told how the waitlist grows. */
export interface Channel {
  readonly name: string
  /** For the log. */
  readonly title: string
  /** Sends one message. `leave` aborts the call. Never rejects. */
  tell(alert: Alert, leave: AbortSignal): Promise<DeliveryResult>
  /** Sends a message that says that it is a test: null when it arrived. Never rejects. */
  check(leave: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
}

/** Where the waitlist reports what the operator should know. Never given an address, a name or a secret. */
export interface Log {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

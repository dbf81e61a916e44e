import type { HandedOver, Handover } from '../delivery/handover.ts'
import { StoreUnavailable } from '../store/database.ts'
import type { Store } from '../store/store.ts'
import type { HoldReason, Signup } from './contact.ts'

/** The result for a visitor once the signup is recorded. `new`: its event is stored and will be delivered. */
export type Joined =
  | HandedOver
  /** The provider is told in the background, so it is not known yet what comes of it. */
  | { readonly is: 'recorded' }
  /** Recorded, and kept back. */
  | { readonly is: 'held'; readonly reason: HoldReason }
  | { readonly is: 'still held' }
  /** Recorded: it goes no further until its address is confirmed, by a link that was mailed there. */
  | { readonly is: 'unconfirmed' }
  /** Its proof was used for another address. */
  | { readonly is: 'spent' }

export interface JoinParts {
  readonly store: Pick<Store, 'admit'>
  /** Null without a provider: then the store is the list. */
  readonly handOver: Handover | null
  /** Null: visitors wait for the provider. Otherwise this takes over what they would wait for. */
  readonly inBackground: ((attempt: Promise<unknown>) => void) | null
  /** Milliseconds that a visitor waits for an attempt that is already under way. */
  readonly timeout: number
  /** Aborted when visitors cannot wait any longer. Their signups are then completed later. */
  readonly signal: AbortSignal
  /** Called when an event was created, or a mail that asks for a confirmation. */
  readonly announce: () => void
  /** Called when a signup was held. */
  readonly held?: (() => void) | undefined
}

/** Milliseconds between two polls of a contact whose hand-over is under way; doubled each time, up to a second. */
const POLL = 100
const LONGEST_POLL = 1_000

/**
 * A visitor joins the waitlist.
 *
 * The store's id of a known contact is never returned: a visitor who types somebody else's address must learn neither
 * an identifier nor, since a UUIDv7 contains it, when that person joined.
 */
export async function join(signup: Signup, parts: JoinParts): Promise<Joined> {
  const { store, handOver, timeout, inBackground, signal, announce, held } = parts
  const until = performance.now() + timeout
  for (let wait = POLL; ; wait = Math.min(2 * wait, LONGEST_POLL)) {
    const admission = await store.admit(signup)
    if (admission.is === 'listed now') {
      announce()
      return { is: 'new', contactId: admission.contactId }
    }
    if (admission.is === 'already listed') return { is: 'known' }
    if (admission.is === 'held now') {
      held?.()
      return { is: 'held', reason: admission.reason }
    }
    if (admission.is === 'still held' || admission.is === 'spent') return { is: admission.is }
    if (admission.is === 'unconfirmed') {
      if (admission.sends) announce()
      return { is: 'unconfirmed' }
    }

    if (handOver === null) throw new Error('without a provider nothing is pending')
    if (inBackground !== null) {
      if (admission.is === 'pending now') inBackground(handOver.attempt(admission.delivery, signal))
      return { is: 'recorded' }
    }
    if (admission.is === 'pending now') return handOver.attempt(admission.delivery, signal)
    const because = handOver.breaker.refusal()
    if (because !== null) return { is: 'kept', because }
    if (signal.aborted) return { is: 'kept', because: 'unreachable' }
    const delivery = await handOver.claim(signup.email)
    if (delivery !== undefined) return handOver.attempt(delivery, signal)
    // It is leased already, or has just ended: the next admission shows which.
    if (performance.now() + wait > until) return { is: 'kept', because: 'unreachable' }
    await new Promise(resolve => setTimeout(resolve, wait))
  }
}

/**
 * Lets visitors join, and keeps track of them, so that the store is not closed while somebody waits for the provider. Where
 * membership is not disclosed, visitors do not wait, and their attempts are in flight instead.
 */
export function inFlight(rest: Omit<JoinParts, 'inBackground'>, disclosesMembership: boolean) {
  const visits = new Map<Promise<unknown>, (reason: StoreUnavailable) => void>()
  const keep = (visit: Promise<unknown>, refuse: (reason: StoreUnavailable) => void) => {
    visits.set(visit, refuse)
    visit.catch(() => {}).finally(() => visits.delete(visit))
  }
  // Nobody waits for these. What the store refuses is attempted again when the lease has ended.
  const inBackground = disclosesMembership ? null : (attempt: Promise<unknown>) => keep(attempt, () => {})
  const parts: JoinParts = { ...rest, inBackground }
  return {
    join(signup: Signup): Promise<Joined> {
      const visit = join(signup, parts)
      // Without a provider there is no need: the server waits for the answers anyway.
      if (parts.handOver === null) return visit
      return new Promise((resolve, reject) => {
        keep(visit, reject)
        visit.then(resolve, reject)
      })
    },
    /** Answers everybody who waits. */
    refuse(): void {
      for (const refuse of visits.values()) refuse(new StoreUnavailable('the outcome was not stored before the stop'))
    },
    over: () => Promise.allSettled(visits.keys()),
  }
}

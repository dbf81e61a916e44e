import type { Log } from '../ports/log.ts'
import { LEASE, type Leased, type Settlement } from '../ports/outbox.ts'
import { StoreUnavailable } from '../ports/signups.ts'

/** What a store does with the deliveries to a destination (`Outbox`), or with the digests of a channel. */
export interface Claims<Item extends Leased> {
  claim(destination: string, most: number, contact?: number): Promise<readonly Item[]>
  settle(item: Item, settlement: Settlement): Promise<boolean>
}

export interface LeasesParts<Item extends Leased> {
  readonly store: Claims<Item>
  readonly destination: string
  readonly log: Log
  /** Called when an event was created. */
  readonly announce: () => void
  /** A monotonic clock, in milliseconds. */
  readonly clock: () => number
}

export type Leases<Item extends Leased> = ReturnType<typeof leases<Item>>

/** Milliseconds until an outcome that the store refused is offered again. */
const PAUSE = 1_000

/**
 * The leases that one process holds of one destination's deliveries.
 *
 * The store believes its clock. If that is set, a lease may seem to have ended while the attempt is under way, and the
 * store gives the delivery out again. This process knows better, by its monotonic clock: it makes no second attempt, and
 * the first one goes on under the new lease. Only another process may make one; then the token decides.
 *
 * A lost outcome would mean a second delivery, or one abandoned in doubt. So an outcome that the store refuses is offered
 * again every second until its lease ends. After that the delivery is in doubt, as it should be.
 */
export function leases<Item extends Leased>(parts: LeasesParts<Item>) {
  const { store, destination, log, announce, clock } = parts
  /** Attempts under way by the number of their delivery, the oldest first. */
  const underWay = new Map<number, { readonly token: string; lease: Item; readonly until: number }>()
  const refused = new Set<Promise<void>>()

  function forgetEnded(): void {
    const now = clock()
    for (const [number, { until }] of underWay) {
      if (until > now) return
      underWay.delete(number)
    }
  }

  /** The delivery under the lease that holds now. Its attempt has ended. */
  function ended(delivery: Item): Item {
    const own = underWay.get(delivery.number)
    if (own?.token !== delivery.token) return delivery
    underWay.delete(delivery.number)
    return own.lease
  }

  async function offer(delivery: Item, settlement: Settlement): Promise<boolean> {
    const stored = await store.settle(delivery, settlement)
    if (stored && settlement.is === 'listed' && settlement.joined) announce()
    return stored
  }

  async function keepTrying(delivery: Item, settlement: Settlement): Promise<void> {
    let why: unknown
    // A try may itself take seconds; after the lease the token guards the row.
    for (let left = LEASE / PAUSE; left > 0; left--) {
      await new Promise(resolve => setTimeout(resolve, PAUSE).unref())
      try {
        await offer(delivery, settlement)
        return
      } catch (error) {
        why = error
        if (!(error instanceof StoreUnavailable)) break
      }
    }
    log.error({ destination, why: String(why) }, 'the outcome of an attempt was not stored')
  }

  return {
    /** An attempt for this delivery begins. */
    begin(delivery: Item): void {
      underWay.delete(delivery.number)
      underWay.set(delivery.number, { token: delivery.token, lease: delivery, until: clock() + LEASE })
    },
    async claim(...which: Parameters<Claims<Item>['claim']>): Promise<readonly Item[]> {
      const claimed = await store.claim(...which)
      forgetEnded()
      return claimed.filter(delivery => {
        const own = underWay.get(delivery.number)
        if (own !== undefined) own.lease = delivery
        return own === undefined
      })
    },
    /**
     * False: the lease was lost, and nothing was changed. Rejects with `StoreUnavailable` at once, so that no visitor waits;
     * the outcome is then stored later.
     */
    async settle(delivery: Item, settlement: Settlement): Promise<boolean> {
      const lease = ended(delivery)
      try {
        return await offer(lease, settlement)
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          const later = keepTrying(lease, settlement).finally(() => refused.delete(later))
          refused.add(later)
        }
        throw error
      }
    },
    /** Resolves when every outcome that the store refused is stored or its lease has ended, or when `signal` is aborted. */
    async settled(signal: AbortSignal): Promise<void> {
      if (refused.size === 0 || signal.aborted) return
      const left = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([Promise.all(refused), left])
    },
  }
}

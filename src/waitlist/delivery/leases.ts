import { LEASE, type Leased, type Settlement } from '../ports/outbox.ts'

/** What a store does with the deliveries to a destination (`Outbox`), or with the digests of a channel. */
export interface Claims<Item extends Leased> {
  claim(destination: string, most: number, contact?: number): Promise<readonly Item[]>
  settle(item: Item, settlement: Settlement): Promise<boolean>
}

/** The leases that one process holds of one destination's deliveries. */
export interface Leases<Item extends Leased> extends Claims<Item> {
  /** An attempt for this delivery begins. */
  begin(delivery: Item): void
}

/**
 * The store believes its clock. If that is set, a lease may seem to have ended while the attempt is under way, and the
 * store gives the delivery out again. This process knows better, by its monotonic clock: it makes no second attempt, and
 * the first one goes on under the new lease. Only another process may make one; then the token decides.
 *
 * `clock` is monotonic, in milliseconds.
 */
export function leases<Item extends Leased>(store: Claims<Item>, clock: () => number): Leases<Item> {
  /** Attempts under way by the number of their delivery, the oldest first. */
  const underWay = new Map<number, { readonly token: string; lease: Item; readonly until: number }>()

  function forgetEnded(): void {
    const now = clock()
    for (const [number, { until }] of underWay) {
      if (until > now) return
      underWay.delete(number)
    }
  }

  return {
    begin(delivery) {
      underWay.delete(delivery.number)
      underWay.set(delivery.number, { token: delivery.token, lease: delivery, until: clock() + LEASE })
    },
    async claim(...which) {
      const claimed = await store.claim(...which)
      forgetEnded()
      return claimed.filter(delivery => {
        const own = underWay.get(delivery.number)
        if (own !== undefined) own.lease = delivery
        return own === undefined
      })
    },
    settle(delivery, settlement) {
      const own = underWay.get(delivery.number)
      if (own?.token !== delivery.token) return store.settle(delivery, settlement)
      underWay.delete(delivery.number)
      return store.settle(own.lease, settlement)
    },
  }
}

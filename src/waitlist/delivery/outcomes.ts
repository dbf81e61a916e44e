import type { Log } from '../ports/log.ts'
import { LEASE, type Leased, type Settlement } from '../ports/outbox.ts'
import { StoreUnavailable } from '../ports/signups.ts'
import type { Claims } from './leases.ts'

/**
 * Stores how attempts ended. A lost outcome would mean a second delivery, or one abandoned in doubt. So an outcome that
 * the store refuses is offered again every second until its lease ends. After that the delivery is in doubt, as it
 * should be.
 */
export interface Outcomes<Item extends Leased> {
  /**
   * False: the lease was lost, and nothing was changed. Rejects with `StoreUnavailable` at once, so that no visitor
   * waits; the outcome is then stored later.
   */
  settle(delivery: Item, settlement: Settlement): Promise<boolean>
  /** Resolves when every outcome that the store refused is stored or its lease has ended, or when `signal` is aborted. */
  settled(signal: AbortSignal): Promise<void>
}

export interface OutcomesParts<Item extends Leased> {
  readonly store: Pick<Claims<Item>, 'settle'>
  readonly destination: string
  readonly log: Log
  /** Called when an event was created. */
  readonly announce: () => void
}

const PAUSE = 1_000

export function outcomes<Item extends Leased>(parts: OutcomesParts<Item>): Outcomes<Item> {
  const { store, destination, log, announce } = parts
  const refused = new Set<Promise<void>>()

  async function attempt(delivery: Item, settlement: Settlement): Promise<boolean> {
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
        await attempt(delivery, settlement)
        return
      } catch (error) {
        why = error
        if (!(error instanceof StoreUnavailable)) break
      }
    }
    log.error({ destination, why: String(why) }, 'the outcome of an attempt was not stored')
  }

  return {
    async settle(delivery, settlement) {
      try {
        return await attempt(delivery, settlement)
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          const later = keepTrying(delivery, settlement).finally(() => refused.delete(later))
          refused.add(later)
        }
        throw error
      }
    },
    async settled(signal) {
      if (refused.size === 0 || signal.aborted) return
      const left = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([Promise.all(refused), left])
    },
  }
}

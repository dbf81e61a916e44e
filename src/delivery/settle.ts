import type { Log } from '../config/operator.ts'
import { StoreUnavailable } from '../store/database.ts'
import type { Delivery, Settlement } from '../store/outbox.ts'
import type { Store } from '../store/store.ts'

interface SettlingParts {
  readonly store: Pick<Store, 'settle'>
  readonly destination: string
  readonly log: Log
  /** Called when an event was created. */
  readonly announce: () => void
}

/** Milliseconds until an outcome that the store refused is offered again, each time. Then its lease ends, in doubt. */
const RETRIES = [1_000, 3_000, 6_000]

/** Stores the outcomes of attempts. A lost one would mean a second attempt, or one that is abandoned in doubt. */
export function settling({ store, destination, log, announce }: SettlingParts) {
  const unsettled = new Set<Promise<void>>()

  async function offer(delivery: Delivery, settlement: Settlement): Promise<boolean> {
    const isStored = await store.settle(delivery, settlement)
    if (isStored && settlement.is === 'listed' && settlement.joined) announce()
    return isStored
  }

  async function retry(delivery: Delivery, settlement: Settlement): Promise<void> {
    let why: unknown
    for (const wait of RETRIES) {
      await new Promise(resolve => setTimeout(resolve, wait).unref())
      try {
        await offer(delivery, settlement)
        return
      } catch (error) {
        why = error
      }
    }
    log.error({ destination, why: String(why) }, 'the outcome of an attempt was not stored')
  }

  return {
    /** False: the lease was lost, and nothing was changed. Rejects at once, so that no visitor waits for the retries. */
    async settle(delivery: Delivery, settlement: Settlement): Promise<boolean> {
      try {
        return await offer(delivery, settlement)
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          const later = retry(delivery, settlement).finally(() => unsettled.delete(later))
          unsettled.add(later)
        }
        throw error
      }
    },
    /** Resolves when every outcome that the store refused is stored or given up, or when `signal` is aborted. */
    async settled(signal: AbortSignal): Promise<void> {
      if (unsettled.size === 0 || signal.aborted) return
      const aborted = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([Promise.all(unsettled), aborted])
    },
  }
}

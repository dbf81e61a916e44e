import { StoreUnavailable } from '../../store/database.ts'
import type { Settlement } from '../../store/outbox.ts'
import type { Log } from '../ports/log.ts'

/** What is attempted and settled as one, leased to the holder of the token. */
export interface Leased {
  readonly number: number
  readonly token: string
  /** Earlier attempts, without those that do not count. */
  readonly attempts: number
  /** Whether an earlier attempt may have taken effect without our knowing. */
  readonly doubt: boolean
}

/** What a store does with the deliveries to a destination, or with the digests of a channel. */
export interface Claims<Item extends Leased> {
  claim(destination: string, most: number, address?: string): Promise<readonly Item[]>
  settle(item: Item, settlement: Settlement): Promise<boolean>
}

export interface SettlingParts<Item extends Leased> {
  readonly store: Pick<Claims<Item>, 'settle'>
  readonly destination: string
  readonly log: Log
  /** Called when an event was created. */
  readonly announce: () => void
}

/** Milliseconds until an outcome that the store refused is offered again, each time. Then its lease ends, in doubt. */
const RETRIES = [1_000, 3_000, 6_000]

/** Stores the outcomes of attempts. A lost one would mean a second delivery, or one that is abandoned in doubt. */
export function settling<Item extends Leased>({ store, destination, log, announce }: SettlingParts<Item>) {
  const unsettled = new Set<Promise<void>>()

  async function offer(delivery: Item, settlement: Settlement): Promise<boolean> {
    const stored = await store.settle(delivery, settlement)
    if (stored && settlement.is === 'listed' && settlement.joined) announce()
    return stored
  }

  async function retry(delivery: Item, settlement: Settlement): Promise<void> {
    let why: unknown
    for (const wait of RETRIES) {
      await new Promise(resolve => setTimeout(resolve, wait).unref())
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
    /**
     * False: the lease was lost, and nothing was changed. Rejects with `StoreUnavailable` at once, so that no visitor waits;
     * the outcome is then offered again.
     */
    async settle(delivery: Item, settlement: Settlement): Promise<boolean> {
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
      const left = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([Promise.all(unsettled), left])
    },
  }
}

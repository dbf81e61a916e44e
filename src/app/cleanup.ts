import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../config/operator.ts'
import { expire } from '../confirm/store.ts'
import { CONFIRM_WITHIN } from '../confirm/token.ts'
import { deleteAttempts } from '../rate-limit/shared.ts'
import type { Tx } from '../store/database.ts'
import { deleteDelivered, deleteExpiredProofs } from '../store/deliveries.ts'
import { moveHandovers } from '../store/outbox.ts'
import type { Store } from '../store/store.ts'

/** Milliseconds for which deliveries are kept that arrived. */
const KEPT = 90 * 86_400_000
/** Milliseconds by which the clocks of instances may differ. */
const CLOCK_SKEW = 60_000
const INTERVAL = 3_600_000
/** Rows of one statement, for which signups wait, and milliseconds until the next. */
const LIMIT = 1_000
const PAUSE = 200

/**
 * Deletes what has expired, at the start and once an hour; any number of instances may. `provider`: hand-overs that an earlier
 * provider left are moved to it, since instances are restarted one by one. Resolves when `signal` is aborted.
 */
export async function cleanUp(
  store: Pick<Store, 'transaction'>,
  provider: string | null,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  async function all(remove: (tx: Tx) => Promise<number>): Promise<void> {
    while ((await store.transaction(remove)) === LIMIT) await sleep(PAUSE, undefined, { signal })
  }

  async function once(): Promise<void> {
    if (provider !== null) await store.transaction(tx => moveHandovers(tx, provider))
    await all(tx => deleteExpiredProofs(tx, tx.now - CLOCK_SKEW, LIMIT))
    await all(tx => deleteAttempts(tx, LIMIT))
    await all(tx => deleteDelivered(tx, tx.now - KEPT, LIMIT))
    await all(tx => expire(tx, tx.now - CONFIRM_WITHIN, LIMIT))
  }

  while (!signal.aborted) {
    await once().catch(error => {
      if (!signal.aborted) log.warn({ why: String(error) }, 'what has expired was not deleted')
    })
    await sleep(INTERVAL, undefined, { signal }).catch(() => {})
  }
}

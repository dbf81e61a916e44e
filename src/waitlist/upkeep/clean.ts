import { expire } from '../../confirm/store.ts'
import { CONFIRM_WITHIN } from '../../confirm/token.ts'
import { deleteAttempts } from '../../rate-limit/shared.ts'
import type { Tx } from '../../store/database.ts'
import { deleteDelivered, deleteExpiredProofs } from '../../store/deliveries.ts'
import { moveHandovers } from '../../store/outbox.ts'
import type { Store } from '../../store/store.ts'
import type { Loop } from '../delivery/loop.ts'
import type { Log } from '../ports/log.ts'
import { pause } from '../timers.ts'

export interface CleaningParts {
  readonly store: Pick<Store, 'transaction'>
  /** Its hand-overs are looked for, since instances are restarted one by one with another provider; null: there is none. */
  readonly provider: string | null
  readonly log: Log
}

/** Milliseconds for which deliveries are kept that were delivered. Longer than anybody has to confirm an address. */
const KEPT = 90 * 86_400_000
/** Milliseconds by which the clocks of instances may differ. */
const CLOCKS_APART = 60_000
/** Milliseconds between two runs. */
const EVERY = 3_600_000
/** Rows of one step, for which signups wait, and milliseconds between two steps. */
const MOST = 1_000
const REST = 200
/** The same for attempts, which nobody waits for. */
const MOST_ATTEMPTS = 10_000

/** Deletes what is over, at the start and once an hour. Any number of instances may do so at once. */
export function cleaning({ store, provider, log }: CleaningParts): Pick<Loop, 'start' | 'stop'> {
  const leaving = new AbortController()
  const { signal } = leaving
  let running: Promise<void> | undefined

  async function all(step: (tx: Tx) => Promise<number>, most = MOST): Promise<number> {
    for (let sum = 0; ; await pause(REST, signal)) {
      const deleted = signal.aborted ? 0 : await store.transaction(step)
      sum += deleted
      if (deleted < most) return sum
    }
  }

  async function clean(): Promise<void> {
    if (provider !== null) await store.transaction(tx => moveHandovers(tx, provider))
    await all(tx => deleteExpiredProofs(tx, tx.now - CLOCKS_APART, MOST))
    await all(tx => deleteAttempts(tx, MOST_ATTEMPTS), MOST_ATTEMPTS)
    const deliveries = await all(tx => deleteDelivered(tx, tx.now - KEPT, MOST))
    if (deliveries > 0) log.info({ deliveries }, 'deliveries that arrived 90 days ago were deleted')
    const contacts = await all(tx => expire(tx, tx.now - CONFIRM_WITHIN, MOST))
    if (contacts > 0) log.info({ contacts }, 'contacts that did not confirm their address in time were deleted')
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await clean()
      } catch (error) {
        log.warn({ why: String(error) }, 'what is over was not deleted')
      }
      await pause(EVERY, signal)
    }
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      leaving.abort()
      await running
    },
  }
}

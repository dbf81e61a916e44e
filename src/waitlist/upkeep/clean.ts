import type { Loop } from '../delivery/loop.ts'
import type { Confirmations } from '../ports/confirmations.ts'
import type { Log } from '../ports/log.ts'
import type { Upkeep } from '../ports/upkeep.ts'
import { pause } from '../timers.ts'

export interface CleaningParts {
  readonly store: Pick<Upkeep, 'prune'> & Pick<Confirmations, 'expire'>
  /** Milliseconds that a contact has to confirm its address; null: nobody has to. */
  readonly confirmWithin: number | null
  readonly log: Log
}

/** Milliseconds for which deliveries are kept that were delivered. Longer than anybody has to confirm an address. */
const KEPT = 90 * 86_400_000
/** Milliseconds between two runs. */
const EVERY = 3_600_000
/** Rows of one step, for which signups wait, and milliseconds between two steps. */
const MOST = 1_000
const REST = 200

/** Deletes what is over, at the start and once an hour. Any number of instances may do so at once. */
export function cleaning({ store, confirmWithin, log }: CleaningParts): Pick<Loop, 'start' | 'stop'> {
  const leaving = new AbortController()
  const { signal } = leaving
  let running: Promise<void> | undefined

  async function all(step: () => Promise<number>): Promise<number> {
    for (let sum = 0; ; await pause(REST, signal)) {
      const deleted = signal.aborted ? 0 : await step()
      sum += deleted
      if (deleted < MOST) return sum
    }
  }

  async function clean(): Promise<void> {
    const deliveries = await all(() => store.prune(KEPT, MOST))
    if (deliveries > 0) log.info({ deliveries }, 'deliveries that arrived 90 days ago were deleted')
    if (confirmWithin === null) return
    const contacts = await all(() => store.expire(confirmWithin, MOST))
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

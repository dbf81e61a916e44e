import { type Loop, loop } from '../delivery/loop.ts'
import type { Confirmations } from '../ports/confirmations.ts'
import type { Log } from '../ports/log.ts'
import type { Upkeep } from '../ports/upkeep.ts'
import { pause } from '../timers.ts'

export interface ExpireParts {
  readonly store: Pick<Upkeep, 'acquireInterval'> & Pick<Confirmations, 'expire'>
  /** Milliseconds that a contact has to confirm its address. */
  readonly within: number
  readonly log: Log
  /** Milliseconds between two steps. */
  readonly rest?: number
  /** Milliseconds since 1970, and on a monotonic clock. */
  readonly clock?: () => number
  readonly monotonic?: () => number
}

/** Milliseconds between two runs, and at most for one: the next goes on. */
const EVERY = 3_600_000
/** Milliseconds. A little less, so that no instance comes too early for its own interval. */
const DISTANCE = EVERY - 60_000
/** Contacts of one step, for which signups wait. */
const STEP = 200
/** Milliseconds. */
const REST = 200
/** Milliseconds by which the clock may be corrected during a run. */
const LEAP = 60_000

/**
 * Deletes contacts that did not confirm their address in time, once an hour; they may sign up anew. Of several instances one
 * does it. A wrong clock must delete nobody: after a leap, or a time without any service, which looks the same, it waits for
 * an hour.
 */
export function expiring(parts: ExpireParts): Loop {
  const { store, within, log, rest = REST, clock = Date.now, monotonic = () => performance.now() } = parts
  const offset = () => clock() - monotonic()

  return loop<'all'>({
    concurrency: 1,
    timeout: EVERY,
    rest: EVERY,
    take: async () => ((await store.acquireInterval('expire', DISTANCE, EVERY)) ? ['all'] : []),
    async do(_, signal) {
      const began = offset()
      let contacts = 0
      try {
        while (!signal.aborted && Math.abs(offset() - began) <= LEAP) {
          const expired = await store.expire(within, STEP)
          contacts += expired
          if (expired < STEP) break
          await pause(rest, signal)
        }
      } finally {
        if (contacts > 0) log.info({ contacts }, 'contacts that did not confirm their address in time were deleted')
      }
    },
    failed: error => log.warn({ why: String(error) }, 'contacts that did not confirm their address were not deleted'),
  })
}

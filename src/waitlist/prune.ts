import { type Loop, loop } from './loop.ts'
import { pause } from './pause.ts'
import type { Log, Store } from './ports.ts'

export interface PruneParts {
  readonly store: Pick<Store, 'takeTurn' | 'prune'>
  /** Days for which deliveries are kept that have ended. */
  readonly days: number
  readonly log: Log
  /** Milliseconds between two steps. */
  readonly rest?: number
}

const DAY = 86_400_000
/** Milliseconds between two looks, and at most for one: then it goes on at the next. */
const EVERY = 3_600_000
/** Milliseconds. A little less, so that nobody finds its own turn too near. */
const DISTANCE = EVERY - 60_000
/** Deliveries that one step looks at. Signups wait for it, and each claim takes far fewer. */
const PAGE = 500
/** Milliseconds: 2,500 deliveries a second, which costs next to nothing. */
const REST = 200

/** Deletes deliveries that ended long ago, once an hour. Of several instances one does it. */
export function pruning({ store, days, log, rest = REST }: PruneParts): Loop {
  let after = 0
  return loop<'all'>({
    concurrency: 1,
    timeout: EVERY,
    rest: EVERY,
    take: async () => ((await store.takeTurn('prune', DISTANCE)) ? ['all'] : []),
    async do(_, leave) {
      let [deleted, abandoned] = [0, 0]
      try {
        while (!leave.aborted) {
          const step = await store.prune(days * DAY, after, PAGE)
          deleted += step.deleted
          abandoned += step.abandoned
          after = step.last ?? 0
          if (step.last === null) break
          await pause(rest, leave)
        }
      } finally {
        if (deleted > 0)
          log.info({ deliveries: deleted, abandoned, days }, 'deliveries that ended long ago were deleted')
      }
    },
    failed: error => log.warn({ why: String(error) }, 'deliveries that ended long ago were not deleted'),
  })
}

import type { Loop } from '../delivery/loop.ts'
import type { Log } from '../ports/log.ts'
import type { Pruned, Upkeep } from '../ports/upkeep.ts'
import { pause } from '../timers.ts'
import { type HourlyParts, hourly } from './hourly.ts'

export interface PruneParts extends HourlyParts {
  readonly store: HourlyParts['store'] & Pick<Upkeep, 'prune'>
  /** Milliseconds for which deliveries are kept that were delivered. */
  readonly keep: number
  readonly log: Log
  /** Milliseconds between two steps. */
  readonly rest?: number
}

const DAY = 86_400_000
/** Deliveries that one step looks at. Signups wait for it, and each claim takes far fewer. */
const PAGE = 500
/** Milliseconds: 2,500 deliveries a second, which costs next to nothing. Counting costs less. */
const REST = 200
const COUNTING_REST = 20
/** The log warns before more than a tenth of all deliveries, and this many, are deleted. */
const FEW = 10

/**
 * Deletes what was delivered long ago, once an hour. A wrong clock must not delete history: it waits for another hour after
 * the log has warned of unusually many.
 */
export function pruning(parts: PruneParts): Loop {
  const { store, keep, log, rest = REST } = parts
  const days = keep / DAY
  /** The last delivery that was looked at; 0: begin anew. */
  let cursor = 0
  /** How many the log warned of. */
  let warnedOf = 0

  return hourly(parts, {
    name: 'prune',
    async run(mayGoOn, signal) {
      let [looked, old, deleted] = [0, 0, 0]
      for (let after: number | null = 0; after !== null; ) {
        if (!mayGoOn()) return
        const step: Pruned = await store.prune(keep, after, PAGE, true)
        looked += step.looked
        old += step.deleted
        after = step.last
        if (after !== null) await pause(Math.min(rest, COUNTING_REST), signal)
      }
      if (old - warnedOf > FEW + looked / 10) {
        warnedOf = old
        const counts = { deliveries: old, of: looked, days }
        log.warn(counts, 'by the clock, unusually many deliveries are old: they are deleted in an hour')
        return
      }
      try {
        while (mayGoOn()) {
          const step = await store.prune(keep, cursor, PAGE)
          deleted += step.deleted
          cursor = step.last ?? 0
          if (step.last === null) break
          await pause(rest, signal)
        }
      } finally {
        if (cursor === 0) warnedOf = 0
        if (deleted > 0) log.info({ deliveries: deleted, days }, 'deliveries that ended long ago were deleted')
      }
    },
    failed: error => log.warn({ why: String(error) }, 'deliveries that ended long ago were not deleted'),
  })
}

import { type Loop, loop } from '../delivery/loop.ts'
import type { Upkeep } from '../ports/upkeep.ts'

export interface HourlyParts {
  readonly store: Pick<Upkeep, 'acquireInterval'>
  /** Milliseconds since 1970, and on a monotonic clock. */
  readonly clock?: () => number
  readonly monotonic?: () => number
}

/** What deletes by the clock. */
interface Deletion {
  /** Of the turn that instances share. */
  readonly name: string
  /** One run, in steps. `mayGoOn` is asked before each. */
  run(mayGoOn: () => boolean, signal: AbortSignal): Promise<void>
  failed(error: unknown): void
}

/** Milliseconds between two runs, and at most for one: the next goes on where it ended. */
const EVERY = 3_600_000
/** Milliseconds. A little less, so that no instance comes too early for its own interval. */
const DISTANCE = EVERY - 60_000
/** Milliseconds by which the clock may be corrected during a run. */
const LEAP = 60_000

/**
 * Deletes once an hour, by one of several instances. A wrong clock must delete nothing: after a leap, or a time without any
 * service, which looks the same, it waits for an hour.
 */
export function hourly(
  { store, clock = Date.now, monotonic = () => performance.now() }: HourlyParts,
  { name, run, failed }: Deletion,
): Loop {
  const offset = () => clock() - monotonic()
  return loop<'all'>({
    concurrency: 1,
    timeout: EVERY,
    rest: EVERY,
    take: async () => ((await store.acquireInterval(name, DISTANCE, EVERY)) ? ['all'] : []),
    do(_, signal) {
      const began = offset()
      return run(() => !signal.aborted && Math.abs(offset() - began) <= LEAP, signal)
    },
    failed,
  })
}

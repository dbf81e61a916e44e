import type { Settlement } from './ports.ts'

/** Deliveries given up in a row, and how many are attempted in so many milliseconds from then on. */
const MANY = 50
const FEW = 10
const INTERVAL = 1_000

/**
 * Bounds the attempts at a destination for which one delivery after the other is given up: it answers, so no outage holds
 * them back, but its operator may still be about to mend it. A delivery that arrives ends it.
 */
export function givenUp(clock: () => number) {
  let inARow = 0
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    note({ is }: Settlement): void {
      if (is === 'abandoned') inARow++
      else if (is === 'delivered' || is === 'listed') inARow = 0
    },
    /** How many of `most` deliveries may be attempted now. */
    permits(most: number): number {
      if (inARow < MANY || most === 0) return most
      if (clock() < nextAt) return 0
      nextAt = clock() + INTERVAL
      return Math.min(most, FEW)
    },
  }
}

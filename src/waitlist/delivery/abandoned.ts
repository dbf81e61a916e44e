import type { Settlement } from '../ports/outbox.ts'

/** After `MANY` deliveries abandoned in a row, `FEW` are attempted in each `INTERVAL` of milliseconds. */
const MANY = 50
const FEW = 10
const INTERVAL = 1_000

/**
 * Slows down a destination whose deliveries are abandoned one after the other. It answers, so the breaker stays closed, but
 * its operator may be about to repair it. The first delivery that arrives ends this.
 */
export function abandonments(clock: () => number) {
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

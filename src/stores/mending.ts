/**
 * The store's clock may be set back, and what waits would then wait longer by as much. So a store looks for deliveries that
 * are due later than they can be, and makes them due: after it was opened, since nobody knows what the clock did before,
 * and whenever its clock is seen to be behind a clock that only grows.
 */
export interface Mending {
  /** The store's clock showed `time` at some moment between `from` and `to`, which are by a clock that only grows. */
  saw(time: number, from: number, to: number): void
  /** Goes on where the last call for this destination ended, if anything is left to be looked at. */
  mend(destination: string): Promise<void>
}

/** Milliseconds. Less is an adjustment, after which nothing waits long. */
const SET_BACK = 1_000

/** Deliveries that one call looks at. Signups wait for it, and each claim takes far fewer. */
export const PAGE = 2_000

/**
 * `page` mends the next deliveries to a destination in the order of their due times, after a place that it returned or
 * from the start, and returns the place of the last; null: there are no more.
 */
export function mending<Place>(
  page: (destination: string, after: Place | undefined) => Promise<Place | null>,
): Mending {
  let last: { readonly time: number; readonly to: number } | undefined
  /** By destination. A new one for each time that the clock was set back. */
  let reached = new Map<string, Place | null>()

  return {
    saw(time, from, to) {
      if (last !== undefined && from - last.to - (time - last.time) > SET_BACK) reached = new Map()
      last = { time, to }
    },
    async mend(destination) {
      const here = reached
      const after = here.get(destination)
      if (after !== null) here.set(destination, await page(destination, after))
    },
  }
}

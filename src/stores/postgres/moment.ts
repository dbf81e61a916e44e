/** A moment by both clocks of the machine: the first may be set, the second stands still while the machine sleeps. */
export interface Moment {
  readonly wall: number
  readonly monotonic: number
}

export const moment = (): Moment => ({ wall: Date.now(), monotonic: performance.now() })

/** Milliseconds since then: at least as many as have passed, unless the clock was set back while the machine slept. */
export const elapsed = ({ wall, monotonic }: Moment): number =>
  Math.max(Date.now() - wall, performance.now() - monotonic)

import { type Histogram, histogram, observe } from '../telemetry/histogram.ts'

/** Milliseconds between two looks. */
const EVERY = 50
/** Seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export interface EventLoop {
  /** By how many seconds this process came too late to what it had to do. */
  readonly delay: Histogram
  stop(): void
}

/** Measures how late a timer is. Node's own measure knows no buckets, and forgets what another reader has not read yet. */
export function eventLoop(): EventLoop {
  const delay = histogram(BOUNDS)
  let due = performance.now() + EVERY
  const timer = setInterval(() => {
    const now = performance.now()
    observe(delay, Math.max(0, now - due) / 1000)
    due = now + EVERY
  }, EVERY).unref()
  return { delay, stop: () => clearInterval(timer) }
}

/** When to try again. Pure functions that return whole milliseconds, as stores keep them. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The waits after each failure of a delivery while others to its destination succeed. */
export interface Schedule {
  readonly delays: readonly number[]
  /** Whether the last wait is repeated for ever, or the delivery is abandoned after it. */
  readonly afterLast: 'repeat' | 'abandon'
}

/** Somebody waits for a welcome mail: soon at first, then less and less often, finally once a day. */
export const handOverSchedule: Schedule = {
  // biome-ignore format: a line for each unit
  delays: [
    2 * SECOND, 5 * SECOND, 15 * SECOND,
    MINUTE, 5 * MINUTE, 30 * MINUTE,
    2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR,
  ],
  afterLast: 'repeat',
}

/** The schedule that Standard Webhooks suggests: ten attempts in about 75 hours. */
export const eventSchedule: Schedule = {
  // biome-ignore format: a line for each unit
  delays: [
    5 * SECOND, 5 * MINUTE, 30 * MINUTE,
    2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR,
  ],
  afterLast: 'abandon',
}

/** During an outage a delivery is due again within half a minute, to be ready when the outage ends. */
const OUTAGE = 20 * SECOND
/** Our own limits kept the call back: its turn comes soon. */
const NOT_SENT = 5 * SECOND

/** A fifth more or less, so that deliveries that failed together are not retried together. `random` is from 0 to 1. */
const scattered = (delay: number, random: number): number => Math.round(delay * (0.8 + 0.4 * random))

/** The wait after this many `failures` of a delivery; null: that was the last attempt. */
export function untilNext({ delays, afterLast }: Schedule, failures: number, random: number): number | null {
  const delay = delays[failures - 1] ?? (afterLast === 'repeat' ? delays.at(-1) : undefined)
  return delay === undefined ? null : scattered(delay, random)
}

/** The wait during an outage, for a delivery whose own wait would be `own`. */
export const untilOutageEnds = (own: number | null, random: number): number =>
  Math.min(own ?? Number.POSITIVE_INFINITY, scattered(OUTAGE, random))

export const untilTurn = (random: number): number => scattered(NOT_SENT, random)

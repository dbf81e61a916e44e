/** When a failed delivery is attempted again. Whole milliseconds, as stores keep them. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The delays after each failure while other deliveries to the destination succeed. */
export interface Schedule {
  readonly delays: readonly number[]
  /** Whether the last delay is repeated for ever, or the delivery is abandoned after it. */
  readonly afterLast: 'repeat' | 'abandon'
}

/** Somebody waits for the welcome: soon at first, then less and less often, in the end once a day. */
export const handoverSchedule: Schedule = {
  // biome-ignore format: a line for each unit
  delays: [
    2 * SECOND, 5 * SECOND, 15 * SECOND,
    MINUTE, 5 * MINUTE, 30 * MINUTE,
    2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR,
  ],
  afterLast: 'repeat',
}

/** As Standard Webhooks suggests: ten attempts in about 75 hours. */
export const eventSchedule: Schedule = {
  // biome-ignore format: a line for each unit
  delays: [
    5 * SECOND, 5 * MINUTE, 30 * MINUTE,
    2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR,
  ],
  afterLast: 'abandon',
}

/** A fifth more or less, so that deliveries that failed together are not retried together. */
const jittered = (delay: number): number => Math.round(delay * (0.8 + 0.4 * Math.random()))

/** The delay after so many failures; null: that was the last attempt. */
export function nextDelay({ delays, afterLast }: Schedule, failures: number): number | null {
  const delay = delays[failures - 1] ?? (afterLast === 'repeat' ? delays.at(-1)! : null)
  return delay === null ? null : jittered(delay)
}

/** During an outage a delivery is due again within half a minute, to be ready when the outage ends. */
export const outageDelay = (): number => jittered(20 * SECOND)

/** When to try again. Pure: milliseconds in, whole milliseconds out, which is what a store can keep. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Somebody waits for a welcome mail: soon at first, then less and less often, in the end once a day. */
const registrationDelays = [
  ...[2 * SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE],
  ...[2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR],
]

/** The schedule that Standard Webhooks suggests: ten attempts in about 75 hours. */
const deliveryDelays = [
  ...[5 * SECOND, 5 * MINUTE, 30 * MINUTE],
  ...[2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR],
]

/** What the other side asks for is respected up to here. */
export const LONGEST_RETRY_AFTER = 24 * HOUR

/** A fifth more or less, so that what failed together does not come again together. `random` is from 0 to 1. */
const scattered = (delay: number, random: number): number => Math.round(delay * (0.8 + 0.4 * random))

const respected = (retryAfter: number): number => Math.ceil(Math.min(retryAfter, LONGEST_RETRY_AFTER))

/** When our own bounds kept a call back: a turn comes soon, but the queue should not be full of who was just sent away. */
const KEPT_BACK = 5 * SECOND
/** Nobody waits at a page for a delivery, and all that wait for one destination are kept back together. */
const DELIVERY_KEPT_BACK = 30 * SECOND

/** The wait after an attempt that called nobody. */
export function untilNextTurn(of: 'registration' | 'delivery', random: number, retryAfter = 0): number {
  const delay = of === 'registration' ? KEPT_BACK : DELIVERY_KEPT_BACK
  return Math.max(scattered(delay, random), respected(retryAfter))
}

/** The wait before the next attempt to register, after `attempts` of them. A signup is never given up. */
export function untilNextRegistration(attempts: number, random: number, retryAfter = 0): number {
  const delay = registrationDelays[Math.min(attempts, registrationDelays.length) - 1] ?? 0
  return Math.max(scattered(delay, random), respected(retryAfter))
}

/** The wait before the next attempt to deliver, after `attempts` of them; null when that was the last. */
export function untilNextDelivery(attempts: number, random: number, retryAfter = 0): number | null {
  const delay = deliveryDelays[attempts - 1]
  if (delay === undefined) return null
  return Math.max(scattered(delay, random), respected(retryAfter))
}

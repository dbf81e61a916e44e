import type { RateDecision } from '../waitlist/ports/limiter.ts'

export interface Quota {
  /** Attempts that a client may make at once, at least 1. */
  readonly limit: number
  /** Seconds in which a used-up quota is refilled, evenly. */
  readonly window: number
}

/** The quota of a network. One client among many never notices it; one that has the whole network to itself does. */
export const networkQuota = ({ limit, window }: Quota): Quota => ({ limit: limit * 16, window })

/**
 * The numbers of GCRA (ITU-T I.371), in milliseconds. A client is one number: the time at which its quota is full again.
 * An attempt moves it one interval ahead. If that would put it more than a window ahead of now, the attempt is refused and
 * the number stays.
 */
export function gcra({ limit, window }: Quota) {
  const windowMs = window * 1000
  const interval = windowMs / limit
  // Absorbs rounding, so that a client that waits exactly as long as it was told is admitted.
  const tolerance = Math.min(1e-3, interval / 100)
  return {
    windowMs,
    interval,
    tolerance,
    /** Whether one more attempt is admitted at `present` where the quota is full again at `before`. */
    admits: (before: number, present: number): boolean => before + interval - present <= windowMs + tolerance,
    /** `used`: milliseconds until the quota is full again, after this attempt. */
    decision(admitted: boolean, used: number): RateDecision {
      const remaining = Math.max(0, Math.floor((windowMs - used + tolerance) / interval))
      // Until one more attempt is left.
      const wait = used - (windowMs - (remaining + 1) * interval)
      return { admitted, remaining, seconds: Math.max(1, Math.ceil((wait - tolerance) / 1000)) }
    },
  }
}

/** What two quotas, of which an attempt needs both, allow together. */
export function both(one: RateDecision, other: RateDecision): RateDecision {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining ? one : other
  return one.seconds > other.seconds ? one : other
}

import type { Log } from '../config/operator.ts'
import type { Failure } from '../http-client/call.ts'

/** Why nothing is sent to a destination. */
export type Outage = 'unreachable' | 'misconfigured'

/** An outage as a predicate of its destination. */
export const outageWords: Readonly<Record<Outage, string>> = {
  unreachable: 'does not answer',
  misconfigured: 'refuses our settings',
}

/** Called when an outage begins, and with null when it is over. */
export type OnOutage = (outage: Outage | null, why: string) => unknown

export type Breaker = ReturnType<typeof breaker>

interface BreakerParts {
  /** The destination, and what people call it. */
  readonly name: string
  readonly label: string
  /** The longest time between two probes, in milliseconds. */
  readonly longestPause: number
  readonly log: Log
  readonly onOutage: OnOutage
}

/** Failures in a row that open it. */
const THRESHOLD = 5
/** Milliseconds until the first probe; each further pause is twice as long. */
const FIRST_PAUSE = 1_000
/** The longest wait that the other side may ask for: it may ask for a day by mistake. */
const LONGEST_WAIT = 60_000

interface Opened {
  pause: number
  probeAt: number
  /** Null until the failure is confirmed: one delivery alone may be at fault, and a limit is no outage. */
  outage: Outage | null
}

/**
 * Whether a destination answers; one for each destination and process. Five failures in a row open it, and so does a
 * refused key, or a wait that the other side asks for. While it is open, one probe is sent after each pause, and the first
 * success closes it.
 */
export function breaker({ name: destination, label, longestPause, log, onOutage }: BreakerParts) {
  let failures = 0
  let opened: Opened | null = null

  /** Returns whether the destination is at fault, and not the delivery. */
  function fail(failure: Failure): boolean {
    failures++
    const wasOpen = opened !== null
    const isLimit = failure.is === 'rate limited'
    if (!wasOpen && !isLimit && failure.is !== 'misconfigured' && failures < THRESHOLD) return false
    const pause = opened === null ? FIRST_PAUSE : Math.min(2 * opened.pause, longestPause)
    const wait = isLimit ? Math.min(failure.retryAfter, LONGEST_WAIT) : 0
    const isConfirmed = failures >= (failure.is === 'misconfigured' ? 2 : THRESHOLD)
    opened = { pause, probeAt: performance.now() + Math.max(pause, wait), outage: opened?.outage ?? null }
    if (isConfirmed && opened.outage === null) {
      opened.outage = failure.is === 'misconfigured' ? 'misconfigured' : 'unreachable'
      log.error({ destination, why: failure.why }, `${label} ${outageWords[opened.outage]}: deliveries are kept`)
      onOutage(opened.outage, failure.why)
    }
    return wasOpen || isLimit
  }

  return {
    /** Why the destination is out; null: it is not. */
    outage: (): Outage | null => opened?.outage ?? null,
    /** Why no visitor should wait for an attempt now. */
    refusal: (): Outage | null => (opened !== null && performance.now() < opened.probeAt ? opened.outage : null),
    /** How many of `most` deliveries may be attempted now. */
    permits(most: number): number {
      if (opened === null) return most
      return performance.now() < opened.probeAt ? 0 : Math.min(most, 1)
    },
    /** An attempt begins; it may hang, so the next probe does not wait for its end. */
    begin(): void {
      if (opened !== null) opened.probeAt = Math.max(opened.probeAt, performance.now() + opened.pause)
    },
    fail,
    succeed(): void {
      failures = 0
      const outage = opened?.outage ?? null
      opened = null
      if (outage === null) return
      log.info({ destination }, `${label} answers again: due deliveries continue`)
      onOutage(null, '')
    },
  }
}

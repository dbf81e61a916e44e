import type { DeliveryResult, Outage } from '../ports/destination.ts'
import type { Log } from '../ports/log.ts'
import type { Creation } from '../ports/provider.ts'
import { throttle } from '../quiet-log.ts'

/**
 * Whether a destination answers. There is one for each destination and process. An outage is noted here and not in the
 * rows that met it, so a million rows need no rewriting when it ends.
 *
 * It opens after five failures in a row, when credentials are refused, and when the other side asks us to wait or is
 * gone. While it is open, only probes are sent, one after each pause, unless a single delivery has failed and nobody asked
 * us to wait: the fault may be its own, so it does not hold up the others. Any answer closes it, but not before the end of a
 * wait that the other side asked for, of which we keep a minute: it may ask for a day by mistake.
 *
 * Deliveries that were refused while another one was accepted are to blame themselves from then on,
 * however many there are.
 */
export interface Breaker {
  /** How many of `most` deliveries may be attempted now. */
  permits(most: number): number
  /** Why no visitor should wait for an attempt now; null: an attempt may be made. */
  refusal(): Outage | null
  /** Why it is open, also while a probe is due; null: it is closed. */
  outage(): Outage | null
  /** An attempt begins. True: it is a probe. */
  begin(): boolean
  /** An attempt for this delivery ended. Returns what to blame for a failure: the destination or perhaps the delivery. */
  note(result: Creation | DeliveryResult, delivery: number): 'destination' | 'delivery'
}

export interface BreakerParts {
  /** The destination. */
  readonly name: string
  /** What the log calls it, and what it says about its deliveries while the breaker is open. */
  readonly called: string
  readonly meanwhile: string
  /** The longest time between two probes, in milliseconds. */
  readonly longestPause: number
  readonly log: Log
  /** Called when it closes, so that due deliveries are attempted again. */
  readonly closed: () => void
  /** Called when the log was told that an outage began, for what reason, or that it ended. */
  readonly onStateChange?: ((to: Outage | 'answering') => void) | undefined
  /** A monotonic clock, in milliseconds. */
  readonly clock: () => number
}

/** Failures in a row. */
const THRESHOLD = 5
/** Milliseconds until the first probe. Each further pause is twice as long. */
const FIRST_PAUSE = 1_000
/** The longest time until the next probe when the other side asks us to wait, whatever it asks for, in milliseconds. */
const LONGEST_ASKED = 60_000
/** Milliseconds without claims after a call hit our own limits: other deliveries would hit them too. */
const TURN = 5_000
/** Deliveries that are remembered as the cause of their own failures. */
const MOST_POISON = 1_000
/** Milliseconds between two log lines, so that an outage that comes and goes does not fill the log. */
const QUIET = 60_000

interface OngoingOutage {
  because: Outage
  /** The other side asked us to wait, so the delivery is certainly not at fault. */
  asked: boolean
  /** Milliseconds until the next probe. */
  pause: number
  /** The reasons that have been logged. */
  readonly told: Set<Outage>
}

export function breaker(parts: BreakerParts): Breaker {
  const { name, called, meanwhile, longestPause, log, closed, onStateChange = () => {}, clock } = parts
  /** Failures since the last answer. `failed`: the delivery that failed, if it was only one. */
  let failures = 0
  let failed: number | 'several' | null = null
  /** False at first: before any answer, a failure is not blamed on the delivery. */
  let answeredLast = false
  /** Not null while the breaker is open. */
  let outage: OngoingOutage | null = null
  /** When the next probe may begin. */
  let probeAt = 0
  /** The end of the wait that the other side asked for. */
  let askedUntil = Number.NEGATIVE_INFINITY
  let turnAt = Number.NEGATIVE_INFINITY
  /** Deliveries that were refused since the last answer, and those that were while others were accepted. */
  const refused = new Set<number>()
  const poison = new Set<number>()
  const mayTell = throttle(QUIET, clock)

  function trip(because: Outage, asked: boolean, why: string): void {
    if (outage === null) outage = { because, asked, pause: FIRST_PAUSE, told: new Set() }
    else {
      outage.because = because
      outage.asked ||= asked
      outage.pause = Math.min(2 * outage.pause, longestPause, asked ? LONGEST_ASKED : Number.POSITIVE_INFINITY)
    }
    probeAt = Math.max(clock() + outage.pause, askedUntil)
    tell(outage, why)
  }

  /** Logs an outage once, and once more if our settings turn out to be the reason. */
  function tell({ because, told }: OngoingOutage, why: string): void {
    if (told.has(because) || (told.size === 0 && !mayTell())) return
    told.add(because)
    const what = because === 'misconfigured' ? 'refuses our settings' : 'does not answer'
    log.error({ destination: name, why }, `${called} ${what}: ${meanwhile}`)
    onStateChange(because)
  }

  function answered(): void {
    for (const delivery of refused) poison.add(delivery)
    refused.clear()
    for (const oldest of poison) {
      if (poison.size <= MOST_POISON) break
      poison.delete(oldest)
    }
    failures = 0
    failed = null
    answeredLast = true
    if (outage === null || clock() < askedUntil) return
    const { told } = outage
    outage = null
    if (told.size > 0) {
      log.info({ destination: name }, `${called} answers again: due deliveries continue`)
      onStateChange('answering')
    }
    closed()
  }

  /** The outage, if it blocks all deliveries. */
  const blocking = () => (outage !== null && (outage.asked || failed === 'several') ? outage : null)

  function refusal(): Outage | null {
    const blocked = blocking()
    return blocked !== null && clock() < probeAt ? blocked.because : null
  }

  return {
    refusal,
    outage: () => outage?.because ?? null,
    permits(most) {
      if (clock() < turnAt || refusal() !== null) return 0
      return blocking() === null ? most : 1
    },
    begin() {
      // This attempt may hang, so the next probe does not wait for its end.
      if (outage !== null) probeAt = Math.max(clock() + outage.pause, askedUntil)
      return blocking() !== null
    },
    note(result, delivery) {
      switch (result.is) {
        case 'unreached':
        case 'unclear':
        case 'misconfigured': {
          if ('notSent' in result && result.notSent) {
            turnAt = clock() + TURN
            return 'destination'
          }
          if ('alone' in result && result.alone) {
            answered()
            return 'delivery'
          }
          if (result.is === 'misconfigured' && poison.has(delivery)) {
            // It says nothing about the others, so the next one is a probe, too.
            probeAt = Math.min(probeAt, Math.max(clock(), askedUntil))
            return 'delivery'
          }
          const asked = 'retryAfter' in result ? result.retryAfter : undefined
          // The destination answered just before, so the delivery itself may be at fault.
          const blame = answeredLast && asked === undefined ? 'delivery' : 'destination'
          answeredLast = false
          failures++
          failed = failed === null || failed === delivery ? delivery : 'several'
          let { why } = result
          if (asked !== undefined) {
            const kept = Math.min(asked, LONGEST_ASKED)
            askedUntil = Math.max(askedUntil, clock() + kept)
            why += `; tried again in ${Math.ceil(kept / 1000)} s`
          }
          const isRefused = result.is === 'misconfigured'
          if (isRefused && refused.size < MOST_POISON) refused.add(delivery)
          if (outage !== null || isRefused || asked !== undefined || failures >= THRESHOLD) {
            trip(isRefused ? 'misconfigured' : 'unreachable', asked !== undefined, why)
          }
          return blame
        }
        case 'gone':
          askedUntil = Number.POSITIVE_INFINITY
          trip('unreachable', true, `${result.why}; nothing more is sent there until the service is restarted`)
          return 'destination'
        default:
          refused.delete(delivery)
          poison.delete(delivery)
          answered()
          return 'delivery'
      }
    },
  }
}

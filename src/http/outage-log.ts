import type { Log, StoreUnavailable } from '../waitlist/ports.ts'
import { throttle } from '../waitlist/throttle.ts'

/** Milliseconds between two lines. */
const QUIET = 10_000

/**
 * Logs that signups are refused because of the store, at most once in ten seconds: an outage under load must not fill the
 * disk that may be its cause. `refused` counts the signups since the line before.
 */
export function outageLog(log: Log): (reason: StoreUnavailable) => void {
  const mayTell = throttle(QUIET)
  let refused = 0
  return ({ message }) => {
    refused++
    if (!mayTell()) return
    log.error({ reason: message, refused }, 'signups are refused')
    refused = 0
  }
}

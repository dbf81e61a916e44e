import type { Log, StoreUnavailable } from '../waitlist/ports.ts'
import { throttle } from '../waitlist/throttle.ts'

/** Milliseconds. */
const QUIET = 10_000

/**
 * Logs that signups are refused because of the store: at once when it begins, then every ten seconds while it lasts. An
 * outage under load must not fill the disk that may be the reason for it. `refused` counts them since the line before.
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

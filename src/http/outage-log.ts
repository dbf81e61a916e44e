import type { Logger } from 'pino'
import type { StoreUnavailable } from '../waitlist/ports.ts'

/** Milliseconds. */
const QUIET = 10_000

/**
 * Logs that signups are refused because of the store: at once when it begins, then at most every ten seconds with their
 * number. An outage under load must not fill the disk that may be the reason for it.
 */
export function outageLog(log: Logger): (reason: StoreUnavailable) => void {
  let refused = 0
  let quietUntil = 0
  return reason => {
    refused++
    const now = performance.now()
    if (now < quietUntil) return
    log.error({ reason: reason.message, refused }, 'signups are refused')
    refused = 0
    quietUntil = now + QUIET
  }
}

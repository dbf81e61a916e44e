import type { Logger } from 'pino'
import type { StoreUnavailable } from '../waitlist/ports.ts'

/** Milliseconds. */
const QUIET = 10_000

/**
 * Logs that signups are refused because of the store: at once when it begins, then every ten seconds with their number
 * while it lasts. An outage under load must not fill the disk that may be the reason for it.
 */
export function outageLog(log: Logger): (reason: StoreUnavailable) => void {
  let refused = 0
  let last = ''
  let first = true
  let quiet: NodeJS.Timeout | undefined
  const tell = () => {
    quiet = undefined
    if (refused === 0) {
      first = true
      return
    }
    log.error({ reason: last, refused }, first ? 'signups are refused' : 'signups were refused in the last 10 s')
    first = false
    refused = 0
    quiet = setTimeout(tell, QUIET).unref()
  }
  return ({ message }) => {
    refused++
    last = message
    if (quiet === undefined) tell()
  }
}

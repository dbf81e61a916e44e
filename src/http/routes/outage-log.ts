import type { Log } from '../../waitlist/ports/log.ts'
import type { StoreUnavailable } from '../../waitlist/ports/signups.ts'
import { summary } from '../../waitlist/quiet-log.ts'

/**
 * Logs that signups are refused because of the store, in one line for ten seconds: an outage under load must not fill the
 * disk that may be its cause.
 */
export const outageLog = (log: Log): ((reason: StoreUnavailable) => void) =>
  summary((refused, { message }) => log.error({ reason: message, refused }, 'signups are refused'))

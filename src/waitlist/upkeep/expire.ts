import type { Loop } from '../delivery/loop.ts'
import type { Confirmations } from '../ports/confirmations.ts'
import type { Log } from '../ports/log.ts'
import { pause } from '../timers.ts'
import { type HourlyParts, hourly } from './hourly.ts'

export interface ExpireParts extends HourlyParts {
  readonly store: HourlyParts['store'] & Pick<Confirmations, 'expire'>
  /** Milliseconds that a contact has to confirm its address. */
  readonly within: number
  readonly log: Log
  /** Milliseconds between two steps. */
  readonly rest?: number
}

/** Contacts of one step, for which signups wait. */
const STEP = 200
/** Milliseconds. */
const REST = 200

/** Deletes contacts that did not confirm their address in time, once an hour; they may sign up anew. */
export function expiring(parts: ExpireParts): Loop {
  const { store, within, log, rest = REST } = parts
  return hourly(parts, {
    name: 'expire',
    async run(mayGoOn, signal) {
      let contacts = 0
      try {
        while (mayGoOn()) {
          const expired = await store.expire(within, STEP)
          contacts += expired
          if (expired < STEP) break
          await pause(rest, signal)
        }
      } finally {
        if (contacts > 0) log.info({ contacts }, 'contacts that did not confirm their address in time were deleted')
      }
    },
    failed: error => log.warn({ why: String(error) }, 'contacts that did not confirm their address were not deleted'),
  })
}

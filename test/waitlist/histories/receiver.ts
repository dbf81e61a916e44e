import type { DeliveryResult, Destination } from '../../../src/waitlist/ports/destination.ts'
import { emailKey } from '../../../src/waitlist/rules/signup.ts'
import { type Line, line, type Witness } from './line.ts'
import type { Time } from './time.ts'

/** A receiver of webhooks that drops what it has seen, as we ask of receivers. In this process. */
export interface Receiver {
  readonly destination: Destination
  readonly line: Line
  /** Different events about this address. */
  events(email: string): number
  /** From now on it answers 410, or not any more. */
  vanish(gone: boolean): void
}

export const RECEIVER = 'receiver'

export function scriptedReceiver(time: Time, witness: Witness, timeout: number): Receiver {
  const addresses = new Map<string, string>()
  const told = line(RECEIVER, time, witness, timeout)
  let gone = false

  return {
    line: told,
    events: email => [...addresses.values()].filter(each => each === email).length,
    vanish(value) {
      gone = value
    },
    destination: {
      name: RECEIVER,
      repeatable: Number.POSITIVE_INFINITY,
      timeout,
      concurrency: 8,
      deliver: ({ id, contact }, leave) =>
        told.carry<DeliveryResult>(id, leave, () => {
          if (gone) {
            witness.seen('receiver: gone')
            return { is: 'gone', why: '410' }
          }
          if (addresses.has(id)) witness.seen('receiver: dropped a repetition')
          addresses.set(id, emailKey(contact.email))
          return { is: 'delivered' }
        }),
    },
  }
}

import { eventOf } from '../signup/contact.ts'
import type { Delivery } from '../store/outbox.ts'
import type { DeliveryResult, Destination } from './destination.ts'
import { type Worker, type WorkerParts, worker } from './worker.ts'

/** Milliseconds. */
const LONGEST_PAUSE = 120_000
/** Seconds after each failure, as Standard Webhooks suggests: ten attempts in about 75 hours. */
const DELAYS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** Delivers events to one destination. `label`: what people call it. */
export function eventWorker(destination: Destination, label: string, parts: WorkerParts): Worker<DeliveryResult> {
  const { name, concurrency, repeatable } = destination
  return worker<DeliveryResult>(
    {
      ...{ name, label, concurrency, longestPause: LONGEST_PAUSE },
      delay: failures => DELAYS[failures - 1] ?? null,
      // Clocks may differ, so the age could be negative.
      mayRepeat: delivery => Math.max(0, Date.now() - eventIn(delivery).at.getTime()) < repeatable,
      async send(delivery, signal) {
        // The link would lead nowhere.
        if (delivery.kind === 'confirmation' && !destination.events.includes('confirmation'))
          return { is: 'refused', why: 'confirmations were turned off' }
        return destination.deliver(eventIn(delivery), signal)
      },
      settlementOf: result => (result.is === 'delivered' ? result : { is: 'abandoned', why: result.why }),
    },
    parts,
  )
}

function eventIn({ contact, kind }: Delivery) {
  if (kind === 'handover') throw new Error('a hand-over goes to the provider')
  return eventOf(contact, kind)
}

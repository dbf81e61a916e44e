import { eventOf, type WaitlistEvent } from '../../signup/contact.ts'
import type { Delivery } from '../../store/outbox.ts'
import type { DeliveryResult, Destination } from '../ports/destination.ts'
import { type DeliveryKind, type Dispatcher, type DispatcherParts, dispatcher } from './deliver.ts'
import { eventSchedule } from './retry.ts'

/** Milliseconds. No visitor waits for these destinations, so probes may be rare. */
const LONGEST_PAUSE = 300_000

export interface EventsParts extends DispatcherParts {
  readonly destination: Destination
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

/**
 * Delivers events to one destination.
 *
 * | answer    | the delivery                                  |
 * |-----------|-----------------------------------------------|
 * | delivered | is done                                       |
 * | refused   | is abandoned: the event would be refused again |
 * | gone      | is abandoned, and nothing more is sent there   |
 * | a failure | see `judgeFailure`                            |
 */
export function events({ destination, now = Date.now, ...parts }: EventsParts): Dispatcher<DeliveryResult, Delivery> {
  const { name, concurrency, repeatable } = destination
  const kind: DeliveryKind<DeliveryResult, Delivery> = {
    name,
    concurrency,
    called: 'the destination',
    meanwhile: 'events are kept and delivered later',
    about: ({ contact }) => ({ contact: contact.id }),
    schedule: eventSchedule,
    longestPause: LONGEST_PAUSE,
    // Clocks may differ, so the age could come out negative.
    mayRepeat: delivery => Math.max(0, now() - eventIn(delivery).at.getTime()) < repeatable,
    // Its link would lead nowhere.
    tell: (delivery, signal, mayBegin) =>
      delivery.kind === 'confirmation' && !destination.events.includes(delivery.kind)
        ? Promise.resolve({ is: 'refused', why: 'confirmations were turned off' })
        : destination.deliver(eventIn(delivery), signal, mayBegin),
    judge(result) {
      if (result.is === 'delivered') return result
      return { is: 'abandoned', why: result.why }
    },
  }
  return dispatcher(kind, parts)
}

function eventIn({ contact, kind }: Delivery): WaitlistEvent {
  if (kind === 'handover') throw new Error('a hand-over goes to the provider')
  return eventOf(contact, kind)
}

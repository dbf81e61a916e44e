import type { DeliveryResult, Destination } from '../ports/destination.ts'
import type { Delivery } from '../ports/outbox.ts'
import { eventOf } from '../rules/contact.ts'
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
    mayRepeat: ({ contact, event }) => Math.max(0, now() - eventOf(contact, event).at.getTime()) < repeatable,
    // Its link would lead nowhere.
    tell: ({ contact, event }, signal, mayBegin) =>
      event === 'asked' && !destination.events.includes(event)
        ? Promise.resolve({ is: 'refused', why: 'confirmations were turned off' })
        : destination.deliver(eventOf(contact, event), signal, mayBegin),
    judge(result) {
      if (result.is === 'delivered') return result
      return { is: 'abandoned', why: result.why }
    },
  }
  return dispatcher(kind, parts)
}

import { type Loop, loop } from './loop.ts'
import {
  type Delivery,
  type Destination,
  type Log,
  type Settlement,
  type Store,
  StoreUnavailable,
  type Told,
} from './ports.ts'
import { untilNextDelivery, untilNextTurn } from './retry.ts'

export interface DeliverParts {
  readonly store: Store
  readonly destination: Destination
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly clock?: () => number
  /** From 0 to 1. */
  readonly random?: () => number
}

/** Milliseconds between two looks at the outbox when nobody wakes the loop. */
const REST = 1_000

/** Milliseconds without a look after a call was kept back: the rest of a backlog would only be taken and given back. */
const KEPT_BACK = 5_000

/** Attempts to record an outcome, a second apart: an outcome that is forgotten means telling it twice. */
const SETTLE_ATTEMPTS = 20

/**
 * Tells one destination of events: takes what is due under a lease, calls outside any transaction, and settles with the
 * token of the lease. Several may run beside each other, in any number of processes.
 */
export function deliveries({ store, destination, log, clock = Date.now, random = Math.random }: DeliverParts): Loop {
  let gone = false
  let keptBackUntil = Number.NEGATIVE_INFINITY

  async function attempt(delivery: Delivery, deadline: AbortSignal): Promise<void> {
    // Clocks may differ: no event is younger than new.
    const age = Math.max(0, clock() - delivery.event.at.getTime())
    const late = delivery.doubt && age >= destination.repeatable
    const told = late ? 'not asked' : await tell(delivery, deadline)
    const settlement = judge(told, delivery, destination, random())
    if (told !== 'not asked' && told.is === 'gone') gone = true
    if (settlement.is === 'waiting' && settlement.uncalled) keptBackUntil = clock() + KEPT_BACK
    if (settlement.is !== 'delivered') {
      const { id } = delivery.event
      const details = { destination: destination.name, event: id, attempt: delivery.attempts + 1, why: settlement.why }
      if (settlement.is === 'abandoned') log.error(details, 'an event was given up; it can be replayed')
      else if (!settlement.uncalled)
        log.warn({ ...details, again: `in ${Math.round(settlement.wait / 1000)} s` }, 'an event was not delivered')
    }
    await settle(delivery, settlement)
  }

  /** A throw is a bug, and of a bug nobody knows what it did. It must not come back at every lease. */
  const tell = ({ event }: Delivery, deadline: AbortSignal): Promise<Told> =>
    destination.deliver(event, deadline).catch(error => ({ is: 'unclear', why: `a bug: ${error}` }))

  async function settle(delivery: Delivery, settlement: Settlement): Promise<void> {
    for (let left = SETTLE_ATTEMPTS; ; left--) {
      try {
        await store.settle(delivery, settlement)
        return
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || left === 1) {
          log.error({ destination: destination.name, why: String(error) }, 'the outcome of a delivery was not stored')
          return
        }
        await new Promise(resolve => setTimeout(resolve, 1_000))
      }
    }
  }

  return loop<Delivery>({
    take: async most => (gone || clock() < keptBackUntil ? [] : store.claim(destination.name, most)),
    do: attempt,
    concurrency: destination.concurrency,
    timeout: destination.timeout,
    rest: REST,
    failed: error => log.error({ destination: destination.name, why: String(error) }, 'the outbox does not work'),
  })
}

/**
 * | told | the delivery |
 * |---|---|
 * | delivered | is over |
 * | unreached | waits for the next attempt of the schedule; after the last one it is given up |
 * | unreached, uncalled | waits a little; the attempt does not count |
 * | unclear | the same as long as the destination recognises a repetition; otherwise it is given up |
 * | misconfigured, gone | is given up: trying again would change nothing |
 *
 * What is in doubt (its outcome is unknown, or a process died with it) is not even tried again when the destination
 * would not recognise it: the owner decides, by a replay.
 */
export function judge(
  told: Told | 'not asked',
  { attempts, doubt, event }: Delivery,
  { repeatable }: Destination,
  random: number,
): Settlement {
  if (told === 'not asked') {
    const why = 'an earlier attempt may have arrived, and the destination would not recognise a second one'
    return { is: 'abandoned', why }
  }
  switch (told.is) {
    case 'delivered':
      return { is: 'delivered' }
    case 'misconfigured':
      return { is: 'abandoned', why: told.why }
    case 'gone':
      return { is: 'abandoned', why: `${told.why}; nothing more is sent there until the service is started again` }
    case 'unreached':
    case 'unclear': {
      if (told.is === 'unclear' && repeatable === 0) {
        return { is: 'abandoned', why: `${told.why}; it may have arrived, and a second one would not be recognised` }
      }
      if (told.is === 'unreached' && told.uncalled) {
        return {
          is: 'waiting',
          wait: untilNextTurn('delivery', random, told.retryAfter),
          doubt,
          why: told.why,
          uncalled: true,
        }
      }
      const wait = untilNextDelivery(attempts + 1, random, told.retryAfter)
      if (wait === null) return { is: 'abandoned', why: `${told.why}; that was the last attempt for ${event.name}` }
      return { is: 'waiting', wait, doubt: doubt || told.is === 'unclear', why: told.why }
    }
  }
}

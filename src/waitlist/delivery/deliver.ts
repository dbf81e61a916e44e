import { StoreUnavailable } from '../../store/database.ts'
import type { Delivery, Settlement } from '../../store/outbox.ts'
import type { DeliveryResult, Failure, Outage } from '../ports/destination.ts'
import type { Log } from '../ports/log.ts'
import type { Creation } from '../ports/provider.ts'
import { summary } from '../quiet-log.ts'
import { type Breaker, breaker } from './breaker.ts'
import { type Loop, loop } from './loop.ts'
import { type Schedule, untilNext, untilOutageEnds, untilTurn } from './retry.ts'
import { type Claims, type Leased, settling } from './settle.ts'

export interface DispatcherParts<Item extends Leased = Delivery> {
  readonly store: Claims<Item>
  readonly log: Log
  /** Called when an event was created. */
  readonly announce: () => void
  /** Called when the log was told that the destination is out, for what reason, or that it answers again. */
  readonly onStateChange?: ((to: Outage | 'answering') => void) | undefined
  /** A monotonic clock, in milliseconds. */
  readonly clock?: () => number
  /** From 0 to 1. */
  readonly random?: () => number
}

/** What distinguishes one kind of delivery from another: where it goes, and what an answer means. */
export interface DeliveryKind<Result extends Creation | DeliveryResult, Item extends Leased> {
  /** The destination. */
  readonly name: string
  /** What the log calls the destination, and what it says about the deliveries during an outage. */
  readonly called: string
  readonly meanwhile: string
  readonly schedule: Schedule
  readonly concurrency: number
  /** The longest time between two probes of a destination that does not answer, in milliseconds. */
  readonly longestPause: number
  /** Whether another attempt may be made when the outcome of the previous one is unknown. */
  mayRepeat(delivery: Item): boolean
  /** `mayBegin` is called when it is the attempt's turn, since an outage may have begun while it waited. */
  tell(delivery: Item, signal: AbortSignal, mayBegin: () => boolean, forVisitor: boolean): Promise<Result>
  /** What an answer other than a failure means for the delivery. */
  judge(result: Exclude<Result, Failure>, delivery: Item): Settlement
  /** What the log says to identify it. */
  about(delivery: Item): object
}

export interface Dispatcher<Result, Item extends Leased> {
  /** Attempts the deliveries that are due. */
  readonly loop: Loop
  readonly breaker: Breaker
  readonly claim: Claims<Item>['claim']
  readonly settle: Claims<Item>['settle']
  settled(signal: AbortSignal): Promise<void>
  /** Makes one attempt for a leased delivery. `stops`: of the loop; absent: it is for a visitor. Rejects only when the store does. */
  attempt(delivery: Item, signal: AbortSignal, stops?: () => boolean): Promise<Attempted<Result>>
}

export interface Attempted<Result> {
  /** Null: the destination was not called. */
  readonly result: Result | null
  readonly settlement: Settlement
  /** Whether the lease still held. */
  readonly stored: boolean
}

/** What the log says about one delivery. */
interface Details {
  readonly destination: string
  readonly attempt: number
  readonly why: string
  readonly again?: string
}

/** Milliseconds between two claims when nothing wakes the loop. */
const REST = 1_000
/** The hard limit of one attempt in milliseconds, well within the lease. The destination's own timeouts are shorter. */
const LONGEST_ATTEMPT = 40_000

/**
 * One destination's part of the outbox: claims due deliveries under a lease, calls outside any transaction, and settles
 * with the lease's token. Any number may run at the same time, in any number of processes.
 */
export function dispatcher<Result extends Creation | DeliveryResult, Item extends Leased>(
  kind: DeliveryKind<Result, Item>,
  { store, log, announce, onStateChange, clock = () => performance.now(), random = Math.random }: DispatcherParts<Item>,
): Dispatcher<Result, Item> {
  const { name: destination, concurrency } = kind
  const state = breaker({ ...kind, log, clock, onStateChange, closed: () => background.wake() })
  const { settle, settled } = settling({ store, destination, log, announce })
  const streak = abandonments(clock)

  async function attempt(delivery: Item, signal: AbortSignal, stops?: () => boolean): Promise<Attempted<Result>> {
    const mayRepeat = kind.mayRepeat(delivery)
    // A stop may cut off what begins now, and not everything may be repeated.
    const mayBegin = () => mayRepeat || !stops?.()
    const result = delivery.doubt && !mayRepeat ? null : await tell(delivery, signal, mayBegin, stops === undefined)
    const settlement = judge(result, delivery)
    streak.note(settlement)
    say(settlement, delivery)
    return { result, settlement, stored: await settle(delivery, settlement) }
  }

  async function tell(
    delivery: Item,
    signal: AbortSignal,
    isWanted: () => boolean,
    forVisitor: boolean,
  ): Promise<Result> {
    const isProbe = state.begin()
    const mayBegin = () => isWanted() && (isProbe || state.refusal() === null)
    try {
      return await kind.tell(delivery, signal, mayBegin, forVisitor)
    } catch (error) {
      // A bug with unknown effects. Without a settlement it would be repeated each time the lease ends.
      return { is: 'unclear', why: `a bug: ${error}` } as Result
    }
  }

  function judge(result: Result | null, delivery: Item): Settlement {
    if (result === null) {
      return { is: 'abandoned', why: 'an earlier attempt may have arrived, and a second one would not be recognised' }
    }
    const blame = state.note(result, delivery.number)
    if (isFailure(result)) return judgeFailure(result, delivery, kind, blame, random())
    return kind.judge(result as Exclude<Result, Failure>, delivery)
  }

  function say(settlement: Settlement, delivery: Item): void {
    if (!('why' in settlement) || settlement.is === 'removed') return
    const details = { destination, ...kind.about(delivery), attempt: delivery.attempts + 1, why: settlement.why }
    if (settlement.is === 'abandoned') sayAbandoned(details)
    // The breaker logs an outage in one line; there is none for each delivery.
    else if (settlement.is === 'retry' && settlement.counts)
      sayFailed({ ...details, again: `in ${Math.round(settlement.wait / 1000)} s` })
  }

  const sayAbandoned = summary<Details>((deliveries, last) => {
    if (deliveries === 1) log.error(last, 'a delivery was abandoned; it can be replayed')
    else log.error({ destination, deliveries, why: last.why }, 'deliveries were abandoned; they can be replayed')
  }, clock)
  const sayFailed = summary<Details>((deliveries, last) => {
    if (deliveries === 1) log.warn(last, 'a delivery failed')
    else log.warn({ destination, deliveries, why: last.why }, 'deliveries failed and are tried again')
  }, clock)

  const background = loop<Item>({
    async take(most) {
      const permitted = streak.permits(state.permits(most))
      return permitted === 0 ? [] : store.claim(destination, permitted)
    },
    async do(delivery, signal, stops) {
      try {
        const { settlement, stored } = await attempt(delivery, signal, stops)
        if (settlement.is !== 'removed' || !stored) return
        const message = `${kind.called} refuses the address of a saved signup: the signup is dropped`
        log.warn({ destination, ...kind.about(delivery), why: settlement.why }, message)
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        // A store that refuses outcomes must take these before it is given more.
        await settled(signal)
      }
    },
    concurrency,
    timeout: LONGEST_ATTEMPT,
    rest: REST,
    failed: error => log.error({ destination, why: String(error) }, 'the outbox does not work'),
  })

  return { loop: background, breaker: state, claim: store.claim, settle, settled, attempt }
}

const isFailure = (result: Creation | DeliveryResult): result is Failure =>
  result.is === 'unreached' || result.is === 'unclear' || result.is === 'misconfigured'

/**
 * What a failure means for a delivery of any kind:
 *
 * | failure                    | the delivery                                                       |
 * |----------------------------|--------------------------------------------------------------------|
 * | not sent                   | is due again in seconds; the attempt does not count                |
 * | during an outage           | is due again within half a minute; the attempt does not count      |
 * | while others succeed       | waits for the next attempt of its schedule, or is abandoned after the last |
 * | unclear and not repeatable | is abandoned: the operator decides                                  |
 *
 * An attempt that may have taken effect leaves doubt.
 */
export function judgeFailure<Item extends Leased>(
  failure: Failure,
  delivery: Item,
  { schedule, mayRepeat }: Pick<DeliveryKind<never, Item>, 'schedule' | 'mayRepeat'>,
  blame: 'destination' | 'delivery',
  random: number,
): Settlement {
  const { why } = failure
  const tookEffect = failure.is === 'unclear' || ('tookEffect' in failure && failure.tookEffect === true)
  const doubt = delivery.doubt || tookEffect
  if (tookEffect && !mayRepeat({ ...delivery, doubt })) {
    return { is: 'abandoned', why: `${why}; it may have arrived, and a second one would not be recognised` }
  }
  if ('notSent' in failure && failure.notSent) {
    return { is: 'retry', wait: untilTurn(random), doubt, why, counts: false }
  }
  const own = untilNext(schedule, delivery.attempts + 1, random)
  if (blame === 'destination') {
    return { is: 'retry', wait: untilOutageEnds(own, random), doubt, why, counts: false }
  }
  if (own === null) return { is: 'abandoned', why: `${why}; that was the last attempt` }
  return { is: 'retry', wait: own, doubt, why, counts: true }
}

/** After `MANY` deliveries abandoned in a row, `FEW` are attempted in each `INTERVAL` of milliseconds. */
const MANY = 50
const FEW = 10
const INTERVAL = 1_000

/**
 * Slows down a destination whose deliveries are abandoned one after the other. It answers, so the breaker stays closed, but
 * its operator may be about to repair it. The first delivery that arrives ends this.
 */
function abandonments(clock: () => number) {
  let inARow = 0
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    note({ is }: Settlement): void {
      if (is === 'abandoned') inARow++
      else if (is === 'delivered' || is === 'listed') inARow = 0
    },
    /** How many of `most` deliveries may be attempted now. */
    permits(most: number): number {
      if (inARow < MANY || most === 0) return most
      if (clock() < nextAt) return 0
      nextAt = clock() + INTERVAL
      return Math.min(most, FEW)
    },
  }
}

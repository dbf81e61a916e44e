import { type Log, summary } from '../config/operator.ts'
import type { Failure } from '../http-client/call.ts'
import { StoreUnavailable } from '../store/database.ts'
import type { Delivery, Settlement } from '../store/outbox.ts'
import type { Store } from '../store/store.ts'
import { type Breaker, breaker, type OnOutage } from './breaker.ts'
import type { Creation, DeliveryResult } from './destination.ts'

export interface WorkerParts {
  readonly store: Pick<Store, 'claim' | 'settle'>
  readonly log: Log
  /** Called when an event was created. */
  readonly announce: () => void
  readonly onOutage?: OnOutage | undefined
}

/** What distinguishes the deliveries to one destination from those to another. */
interface Lane<Result extends Creation | DeliveryResult> {
  /** The destination, and what people call it. */
  readonly name: string
  readonly label: string
  /** Attempts in flight at once in the background. */
  readonly concurrency: number
  /** The longest time between two probes, in milliseconds. */
  readonly longestPause: number
  /** Seconds until the next attempt after so many failures; null: that was the last one. */
  delay(failures: number): number | null
  /** Whether another attempt may be made when the outcome of the previous one is unknown. */
  mayRepeat(delivery: Delivery): boolean
  send(delivery: Delivery, signal: AbortSignal): Promise<Result>
  /** What becomes of the delivery after anything but a failure. */
  settlementOf(result: Exclude<Result, Failure>): Settlement
}

export interface Attempted<Result> {
  /** Null: nothing was sent, since a repetition would not be recognised. */
  readonly result: Result | null
  readonly settlement: Settlement
  /** Whether the lease still held. */
  readonly isStored: boolean
}

/** Milliseconds between two polls when nothing wakes the worker, and from a wake to the poll, for all that many signups leave. */
const POLL_INTERVAL = 1_000
const WAKE_DELAY = 100
/** Milliseconds that an attempt may take, well within the lease. */
export const LONGEST_ATTEMPT = 40_000
/** Seconds: during an outage a delivery is due again soon, to be ready when the outage ends. */
const OUTAGE_DELAY = 20
/** Milliseconds until an outcome that the store refused is offered again, each time. Then its lease ends, in doubt. */
const RETRIES = [1_000, 3_000, 6_000]

export type Worker<Result extends Creation | DeliveryResult> = ReturnType<typeof worker<Result>>

/**
 * Delivers to one destination: claims due deliveries under a lease, attempts them outside any transaction, and settles them
 * with the lease's token. Any number may run at the same time, in any number of processes.
 */
export function worker<Result extends Creation | DeliveryResult>(lane: Lane<Result>, parts: WorkerParts) {
  const { store, log, announce, onOutage } = parts
  const { name: destination, label, concurrency, longestPause } = lane
  const inFlight = new Set<Promise<void>>()
  const unsettled = new Set<Promise<void>>()
  const cutOff = new AbortController()
  let isStopped = false
  let isWoken = false
  let endRest = () => {}
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  const state = breaker({
    ...{ name: destination, label, longestPause, log },
    onOutage(outage, why) {
      if (outage === null) wake()
      onOutage?.(outage, why)
    },
  })

  /** Makes one attempt for a leased delivery. Rejects only when the store does. */
  async function attempt(delivery: Delivery, signal: AbortSignal): Promise<Attempted<Result>> {
    const result = delivery.doubt && !lane.mayRepeat(delivery) ? null : await send(delivery, signal)
    const settlement = result === null ? lost('an earlier attempt may have arrived') : judge(result, delivery)
    report(settlement, delivery)
    return { result, settlement, isStored: await settle(delivery, settlement) }
  }

  async function send(delivery: Delivery, signal: AbortSignal): Promise<Result> {
    state.begin()
    try {
      return await lane.send(delivery, signal)
    } catch (error) {
      // A bug with unknown effects. Without a settlement it would be repeated each time the lease ends.
      return { is: 'in doubt', why: `a bug: ${error}` } as Result
    }
  }

  /** What an attempt that failed means for its delivery is in docs/events.md. */
  function judge(result: Result, delivery: Delivery): Settlement {
    if (!isFailure(result)) {
      state.succeed()
      return lane.settlementOf(result as Exclude<Result, Failure>)
    }
    const { why } = result
    const isOutage = 'recipientOnly' in result ? false : state.fail(result)
    const doubt = delivery.doubt || result.is === 'in doubt'
    if (result.is === 'in doubt' && !lane.mayRepeat({ ...delivery, doubt })) return lost(`${why}; it may have arrived`)
    const delay = isOutage ? OUTAGE_DELAY : lane.delay(delivery.attempts + 1)
    if (delay === null) return { is: 'abandoned', why: `${why}; that was the last attempt` }
    // A fifth more or less, so that deliveries that failed together are not retried together.
    const wait = delay * (800 + 400 * Math.random())
    return { is: 'retry', wait, doubt, why, counts: !isOutage }
  }

  const lost = (why: string): Settlement => ({
    is: 'abandoned',
    why: `${why}, and ${label} would not recognise another`,
  })

  function report(settlement: Settlement, { contact, attempts }: Delivery): void {
    if (settlement.is !== 'abandoned' && settlement.is !== 'retry') return
    const last = { destination, contact: contact.id, attempt: attempts + 1, why: settlement.why }
    if (settlement.is === 'abandoned') reportAbandoned(last)
    // An outage is logged in one line, and not for each delivery.
    else if (settlement.counts) reportFailed(last)
  }

  const reportAbandoned = summary<object>((deliveries, last) =>
    log.error({ ...last, deliveries }, 'deliveries were abandoned; they can be replayed'),
  )
  const reportFailed = summary<object>((deliveries, last) =>
    log.warn({ ...last, deliveries }, 'deliveries failed and are tried again'),
  )
  const reportUnclaimed = summary<unknown>((polls, error) =>
    log.error({ destination, polls, why: String(error) }, 'deliveries cannot be claimed'),
  )

  /**
   * Stores the outcome of an attempt. False: the lease was lost, and nothing was changed. Rejects at once when the store
   * refuses it, so that no visitor waits, and offers it again: a lost outcome would mean a second attempt.
   */
  async function settle(delivery: Delivery, settlement: Settlement): Promise<boolean> {
    try {
      return await offer(delivery, settlement)
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        const later = offerAgain(delivery, settlement).finally(() => unsettled.delete(later))
        unsettled.add(later)
      }
      throw error
    }
  }

  async function offer(delivery: Delivery, settlement: Settlement): Promise<boolean> {
    const isStored = await store.settle(delivery, settlement)
    if (isStored && settlement.is === 'listed' && settlement.joined) announce()
    return isStored
  }

  async function offerAgain(delivery: Delivery, settlement: Settlement): Promise<void> {
    let why: unknown
    for (const wait of RETRIES) {
      await new Promise(resolve => setTimeout(resolve, wait).unref())
      try {
        await offer(delivery, settlement)
        return
      } catch (error) {
        why = error
      }
    }
    log.error({ destination, why: String(why) }, 'the outcome of an attempt was not stored')
  }

  /** Resolves when every outcome that the store refused is stored or given up, or when `signal` is aborted. */
  async function settled(signal: AbortSignal): Promise<void> {
    if (unsettled.size === 0 || signal.aborted) return
    const aborted = new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
    await Promise.race([Promise.all(unsettled), aborted])
  }

  /** Attempts due deliveries. Resolves once they are in flight, with their number and whether more may be due. */
  async function begin() {
    const most = state.permits(concurrency - inFlight.size)
    const claimed = most === 0 ? [] : await store.claim(destination, most)
    for (const delivery of claimed) {
      const done = inBackground(delivery).finally(() => inFlight.delete(done))
      inFlight.add(done)
    }
    return { count: claimed.length, mayBeMore: most > 0 && claimed.length === most }
  }

  async function inBackground(delivery: Delivery): Promise<void> {
    const signal = AbortSignal.any([cutOff.signal, AbortSignal.timeout(LONGEST_ATTEMPT)])
    try {
      const { settlement, isStored } = await attempt(delivery, signal)
      if (settlement.is !== 'removed' || !isStored) return
      const details = { destination, contact: delivery.contact.id, why: settlement.why }
      log.warn(details, `${label} refuses the address of a saved signup: the signup is dropped`)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) log.error({ destination, why: String(error) }, 'an attempt failed')
      // A store that refuses outcomes must take these before it is given more.
      await settled(signal)
    }
  }

  function wake(): void {
    if (isWoken) return
    isWoken = true
    clearTimeout(timer)
    timer = setTimeout(() => endRest(), WAKE_DELAY)
  }

  async function rest(): Promise<void> {
    await new Promise<void>(resolve => {
      endRest = resolve
      timer = setTimeout(resolve, isWoken ? WAKE_DELAY : POLL_INTERVAL)
    })
    clearTimeout(timer)
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      isWoken = false
      const begun = await begin().catch(reportUnclaimed)
      if (inFlight.size >= concurrency) await Promise.race(inFlight)
      else if (!isStopped && !begun?.mayBeMore) await rest()
    }
  }

  return {
    ...{ name: destination, attempt, settle, settled, wake },
    breaker: state as Pick<Breaker, 'outage' | 'refusal'>,
    start(): void {
      running ??= run()
    },
    /** Polls once, without the loop. Resolves with the number of attempts when they are done. */
    async once(): Promise<number> {
      const { count } = await begin()
      await Promise.all(inFlight)
      return count
    },
    /** Claims nothing more, and resolves when all attempts have ended. After `grace` milliseconds it aborts them. */
    async stop(grace: number): Promise<void> {
      isStopped = true
      endRest()
      const aborting = setTimeout(() => cutOff.abort(), grace)
      await running
      await Promise.all(inFlight)
      clearTimeout(aborting)
    },
  }
}

const FAILURES: readonly string[] = ['rate limited', 'misconfigured', 'unreachable', 'in doubt']

const isFailure = (result: Creation | DeliveryResult): result is Failure => FAILURES.includes(result.is)

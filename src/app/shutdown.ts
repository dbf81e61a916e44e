import type { Logger } from 'pino'
import type { Worker } from '../delivery/worker.ts'
import type { HttpServer } from '../http/server.ts'
import type { inFlight } from '../signup/join.ts'
import type { Store } from '../store/store.ts'

/** What a stop brings to an end. */
export interface Running {
  readonly server: Pick<HttpServer, 'close'>
  readonly store: Pick<Store, 'refuse'>
  readonly visits: ReturnType<typeof inFlight>
  readonly workers: readonly Pick<Worker<never>, 'stop' | 'settled'>[]
  readonly channels: readonly Pick<Worker<never>, 'stop'>[]
  /** Ends the outbound calls that visitors and alerts wait for. */
  readonly outbound: AbortController
  readonly log: Logger
  /** Releases everything. */
  close(): Promise<void>
}

/**
 * The timeline of a stop in milliseconds, whatever the database and the outside do; orchestrators usually kill after 10 s.
 * First outbound calls are aborted; they are repeated later.
 */
const OUTBOUND_GRACE = 5_000
/** Visitors who still wait are refused now: their signup, or its outcome, could not be stored. */
const ANSWER_DEADLINE = 6_500
/** The database is no longer waited for: what it has not stored was not acknowledged. */
const STORE_DEADLINE = 8_500

/**
 * Answers and stores what was accepted, then releases everything. Resolves at the latest after `STORE_DEADLINE`. False: the
 * database did not answer.
 */
export async function stop(running: Running): Promise<boolean> {
  const { server, store, visits, workers, channels, outbound, log, close } = running
  const answered = new AbortController()
  const left = Promise.withResolvers<boolean>()
  const timers = [
    setTimeout(() => outbound.abort(), OUTBOUND_GRACE),
    setTimeout(() => {
      answered.abort()
      store.refuse()
      visits.refuse()
    }, ANSWER_DEADLINE),
    setTimeout(() => {
      log.warn('the database does not answer: attempts whose outcome was not stored will be repeated')
      left.resolve(false)
    }, STORE_DEADLINE),
  ]
  const done = async () => {
    await Promise.all([server.close(), ...[...workers, ...channels].map(each => each.stop(OUTBOUND_GRACE))])
    outbound.abort()
    await visits.over()
    await Promise.all(workers.map(({ settled }) => settled(answered.signal)))
    await close()
    return true
  }
  const isDone = await Promise.race([done(), left.promise])
  for (const timer of timers) clearTimeout(timer)
  return isDone
}

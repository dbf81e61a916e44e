import type { Commits } from '../../telemetry/telemetry.ts'
import type { Log } from '../../waitlist/ports/log.ts'
import type { Delivery, Digest, DigestSettlement, Settlement } from '../../waitlist/ports/outbox.ts'
import { type Admission, type Store, StoreUnavailable } from '../../waitlist/ports/signups.ts'
import type { HoldRules } from '../../waitlist/rules/hold.ts'
import type { Signup } from '../../waitlist/rules/signup.ts'
import { checked } from '../check.ts'
import { type Bounds, groupCommit, signupsAhead, type Transaction } from '../group-commit.ts'
import { oneAtATime, type UpkeepCall } from '../upkeep.ts'
import { MINIMUM_FREE } from './disk.ts'
import type { Result, Results, Step } from './outbox.ts'
import { countIn, startThread } from './thread.ts'
import type { Reply, SqliteOptions } from './worker.ts'

export interface SqliteStoreOptions extends Pick<SqliteOptions, 'path' | 'eventName' | 'maxPages'> {
  readonly destinations?: readonly string[]
  readonly provider?: string | null
  readonly asks?: string | null
  readonly trackSources?: boolean
  readonly holds?: HoldRules | null
  readonly minimumFree?: number
  readonly bounds?: Bounds | undefined
  /** Milliseconds since 1970. */
  readonly clock?: (() => number) | undefined
  readonly log?: Log
  /** Null: commits are not measured. */
  readonly commits?: Commits | null
}

/**
 * The embedded store: one SQLite file, written by one connection in one worker thread, fully synced.
 *
 * @throws {OperatorError} when the file cannot be used as it is.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const {
    bounds,
    clock = Date.now,
    log,
    provider = null,
    asks = null,
    trackSources = false,
    holds = null,
    commits,
    ...rest
  } = options
  const defaults = { minimumFree: MINIMUM_FREE, destinations: [] }
  const thread = await startThread({ ...defaults, provider, asks, trackSources, holds, ...rest }, log)

  const step = async (steps: readonly Step[]): Promise<readonly Result[]> => {
    const reply = await thread.ask({ do: 'step', steps, now: clock() })
    if (reply.is !== 'stepped') throw unavailable(reply)
    return reply.results
  }
  const settlements = groupCommit<Step, Result>(step, { bounds })
  // Apart, so that an attempt can be ended on a disk that is too full to begin another.
  const claims = groupCommit<Step, Result>(step, { bounds })
  const settle = ({ number, token }: Delivery, settlement: Settlement) =>
    settlements.submit({ do: 'settle', number, token, settlement }) as Promise<boolean>
  const settleDigest = (digest: Digest, settlement: DigestSettlement, distance: number) =>
    settlements.submit({ do: 'settle digest', digest, settlement, distance }) as Promise<boolean>

  let ended: Transaction | null = null
  const admit = async (signups: readonly Signup[]): Promise<readonly Admission[]> => {
    const reply = await thread.ask({ do: 'admit', signups, now: clock() })
    if (reply.is !== 'admitted') throw unavailable(reply)
    ended = reply.ended
    return reply.admissions
  }
  const trial = async () => {
    const reply = await thread.ask({ do: 'try', now: clock() })
    if (reply.is !== 'done') throw unavailable(reply)
  }
  const able = checked(admit, trial)
  const signups = groupCommit<Signup, Admission>(able.admit, {
    bounds,
    // The thread commits all batches that wait at once, so more of them keep it busy while a long turn goes on.
    ahead: { ...signupsAhead, batches: 8 },
    ended: () => ended,
    measured: commits,
  })

  let closed: Promise<void> | undefined
  let counted: Promise<unknown> = Promise.resolve()

  const upkeep = <Answer>(...call: UpkeepCall) => claims.submit({ do: 'upkeep', call }) as Promise<Answer>

  /** Counts in a thread of its own; what is in memory only its own thread can count. */
  function count<Answer>(what: 'countListed' | 'counts'): Promise<Answer> {
    if (options.path === ':memory:') return upkeep(what)
    if (closed !== undefined) return Promise.reject(new StoreUnavailable('the store is closed'))
    const count = countIn<Answer>(options.path, what, clock())
    counted = Promise.allSettled([counted, count])
    return count
  }

  async function close(): Promise<void> {
    await Promise.all([signups.drain(), claims.drain(), settlements.drain()])
    // The last to close the file puts the log into it, which one who only reads cannot.
    await counted
    await thread.close()
  }

  return {
    admit: signups.submit,
    isBehind: signups.isBehind,
    refuse: signups.refuse,
    claim: (destination, most, contact) =>
      claims.submit({ do: 'claim', destination, most, contact }) as Promise<Results['claim']>,
    settle,
    claimDigest: (channel, most, distance) =>
      claims.submit({ do: 'claim digest', channel, most, distance }) as Promise<Results['claim digest']>,
    settleDigest,
    acquireInterval: (name, distance) => claims.submit({ do: 'acquire interval', name, distance }) as Promise<boolean>,
    prune: (...how) => upkeep('prune', ...how),
    secret: name => upkeep('secret', name),
    invitation: code => upkeep('invitation', code),
    redeem: code => upkeep('redeem', code),
    confirm: contact => upkeep('confirm', contact),
    leave: email => upkeep('leave', email),
    expire: (within, most) => upkeep('expire', within, most),
    countListed: () => count('countListed'),
    counts: oneAtATime(() => count('counts')),
    failure: thread.failure,
    check: () => (closed === undefined ? able.check() : Promise.reject(new StoreUnavailable('the store is closed'))),
    close: () => (closed ??= close()),
  }
}

const unavailable = (reply: Reply) => new StoreUnavailable('why' in reply ? reply.why : 'no answer')

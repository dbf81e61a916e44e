import type { Commits } from '../../telemetry/telemetry.ts'
import { type Log, OperatorError } from '../../waitlist/ports/log.ts'
import { type Admission, type Store, StoreUnavailable } from '../../waitlist/ports/signups.ts'
import { throttle } from '../../waitlist/quiet-log.ts'
import type { HoldRules } from '../../waitlist/rules/hold.ts'
import type { Signup } from '../../waitlist/rules/signup.ts'
import { checked } from '../check.ts'
import { type Bounds, groupCommit, signupsAhead } from '../group-commit.ts'
import { storeName } from '../location.ts'
import { oneAtATime, upkeepOn } from '../upkeep.ts'
import { type Postgres, postgres } from './client.ts'
import { passes, reasonOf } from './errors.ts'
import { postgresOutbox } from './outbox.ts'
import { upgrade, warnOf } from './schema.ts'
import { adopt, postgresSignups } from './signups.ts'
import { postgresSql } from './sql.ts'

export interface PostgresStoreOptions {
  readonly url: string
  /** The name of every event. */
  readonly eventName: string
  /** The destinations of every event. */
  readonly destinations?: readonly string[]
  /** The provider that confirms a contact before it is listed; null: there is none. */
  readonly provider?: string | null
  /** The destination that asks new contacts to confirm their address before all else; null: nobody has to. */
  readonly asks?: string | null
  /** Whether the sources of signups are kept. */
  readonly trackSources?: boolean
  /** Whom the store holds; null: no signup is held, and none has a proof. */
  readonly holds?: HoldRules | null
  readonly log: Log
  readonly bounds?: Bounds
  readonly connections?: number
  /** Milliseconds that opening waits for the database, which may have been started at the same time. */
  readonly timeout?: number
  /** Milliseconds since 1970. Without it the server's clock is used, which all instances share. */
  readonly clock?: () => number
  /** Null: commits are not measured. */
  readonly commits?: Commits | null
}

const TIMEOUT = 15_000
/** Milliseconds between two looks for pending contacts of an earlier provider. */
const ADOPT_EVERY = 60_000
/** Milliseconds between two tries to open. */
const PAUSE = 500

/**
 * The shared store: any number of instances on one PostgreSQL database.
 *
 * @throws {OperatorError} when the database cannot be reached or used as it is.
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { eventName, destinations = [], provider = null, asks = null, clock, bounds } = options
  const now = () => (clock === undefined ? null : new Date(clock()))
  const database = await opened(options)
  const common = { eventName, destinations, provider, now }
  const outbox = postgresOutbox(database, { ...common, bounds })
  const { claim, settle, claimDigest, settleDigest, acquireInterval } = outbox
  const upkeep = upkeepOn(postgresSql(database), { eventName, destinations, provider, asks }, now)
  const { trackSources = false, holds = null } = options
  const { admit, trial } = postgresSignups(database, { ...common, asks, trackSources, holds })
  const able = checked(admit, trial)
  const signups = groupCommit<Signup, Admission>(able.admit, {
    bounds,
    ahead: signupsAhead,
    measured: options.commits,
  })

  let closed: Promise<void> | undefined

  async function close(): Promise<void> {
    await signups.drain()
    await outbox.close()
    await database.close()
  }

  /** While instances are restarted one by one with another provider, the old ones go on taking signups for theirs. */
  const mayAdopt = throttle(ADOPT_EVERY, clock)
  mayAdopt()
  async function adoptAndClaim(...[destination, most, contact]: Parameters<Store['claim']>) {
    if (destination === provider && contact === undefined && mayAdopt()) await adopt(database, provider)
    return claim(destination, most, contact)
  }

  return {
    admit: signups.submit,
    isBehind: signups.isBehind,
    refuse: signups.refuse,
    claim: adoptAndClaim,
    settle,
    claimDigest,
    settleDigest,
    acquireInterval,
    ...upkeep,
    counts: oneAtATime(upkeep.counts),
    check: () => (closed === undefined ? able.check() : Promise.reject(new StoreUnavailable('the store is closed'))),
    // Never resolves: a restart or a failover is temporary, and what was committed stays committed.
    failure: new Promise(() => {}),
    close: () => (closed ??= close()),
  }
}

/** Waits until the database can be used, and prepares it. */
async function opened(options: PostgresStoreOptions): Promise<Postgres> {
  const { url, log, provider = null, timeout = TIMEOUT } = options
  const place = storeName({ kind: 'postgres', url })
  const database = postgres({ url, connections: options.connections, log })
  const until = performance.now() + timeout
  for (let told = false; ; told = true) {
    try {
      await database.lend(async client => {
        const facts = await upgrade(client, place)
        warnOf(facts, log, place)
      })
      await adopt(database, provider)
      return database
    } catch (error) {
      const message = reasonOf(error)
      if (passes(error) && performance.now() < until) {
        if (!told) log.warn({ database: place, why: message, seconds: timeout / 1_000 }, 'waiting for the database')
        await new Promise(resolve => setTimeout(resolve, PAUSE))
        continue
      }
      await database.close()
      if (error instanceof OperatorError) throw error
      throw new OperatorError(`${place} cannot be used: ${message}`)
    }
  }
}

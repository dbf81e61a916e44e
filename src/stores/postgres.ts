import { type Admission, CannotOpen, type Log, type Store, StoreUnavailable } from '../waitlist/ports.ts'
import type { Signup } from '../waitlist/signup.ts'
import { type Bounds, naturalBatches } from './batch.ts'
import { givingBack } from './give-back.ts'
import { storeName } from './place.ts'
import { type Postgres, postgres } from './postgres/client.ts'
import { passes, reasonOf } from './postgres/errors.ts'
import { leases } from './postgres/leases.ts'
import { upgrade } from './postgres/migrate.ts'
import { requireMoved } from './postgres/moving.ts'
import { postgresOutbox } from './postgres/outbox.ts'
import { postgresRegistrations } from './postgres/registrations.ts'
import { COMMITS_WAIT, COMMITS_WAITING, requireRights, warnOf } from './postgres/server.ts'
import { postgresSignups } from './postgres/signups.ts'

export interface PostgresStoreOptions {
  readonly url: string
  /** The name that every event is given. */
  readonly eventName: string
  /** Who is told of every event. */
  readonly destinations?: readonly string[]
  /** The provider that confirms a contact before it is listed; null: there is none. */
  readonly provider?: string | null
  readonly log: Log
  readonly bounds?: Bounds
  readonly connections?: number
  /** Milliseconds that opening waits for a database that is not there yet, as when everything is started at once. */
  readonly patience?: number
  /** Milliseconds since 1970. Without it the server's clock counts, which all instances share. */
  readonly clock?: () => number
}

const PATIENCE = 15_000
/** Milliseconds between two tries to open. */
const PAUSE = 500

/**
 * The shared store: any number of instances on one PostgreSQL database.
 *
 * @throws {CannotOpen} when the database cannot be reached or used as it is.
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { eventName, destinations = [], provider = null, clock, bounds } = options
  const now = () => (clock === undefined ? null : new Date(clock()))
  const database = await opened(options)
  const { run } = database
  const held = leases(database, now)
  const registrations = postgresRegistrations(database, held, { eventName, destinations, now, bounds })
  const outbox = postgresOutbox(database, held, { now, bounds })
  const { begin, beginDue, conclude, hasten } = registrations
  const { claim, settle } = outbox
  const giveBack = givingBack({ conclude, settle })
  const signups = naturalBatches<Signup, Admission>(
    postgresSignups(database, held, { eventName, destinations, provider, now }),
    bounds,
    (_, admission) => {
      if (admission.is === 'pending now') giveBack({ registrations: [admission.registration] })
    },
  )

  async function look(): Promise<void> {
    const text = `select current_setting('transaction_read_only')::boolean as readonly, ${COMMITS_WAIT} as wait`
    const [row] = await run<{ readonly: boolean; wait: boolean }>(() => ({ text, values: [] }))
    if (row?.wait !== false) throw new StoreUnavailable(COMMITS_WAITING)
    if (row.readonly) throw new StoreUnavailable('PostgreSQL is read only: a standby, or set so')
  }
  let checking: Promise<void> | undefined
  let closed: Promise<void> | undefined

  async function close(): Promise<void> {
    await Promise.all([signups.drain(), registrations.drain(), outbox.drain()])
    await held.close()
    await database.close()
  }

  return {
    ...{ admit: signups.submit, begin, beginDue, conclude, hasten, claim, settle },
    // While a slow server owes an answer, nobody asks again.
    check: () =>
      (checking ??= look().finally(() => {
        checking = undefined
      })),
    // A restart or a failover passes; what was committed stays committed.
    failure: new Promise(() => {}),
    close: () => (closed ??= close()),
  }
}

/** Waits until the database takes part, and makes it ready. */
async function opened(options: PostgresStoreOptions): Promise<Postgres> {
  const { url, log, patience = PATIENCE } = options
  const place = storeName({ kind: 'postgres', url })
  const database = postgres(options)
  const until = performance.now() + patience
  for (let told = false; ; told = true) {
    try {
      await database.lend(async client => {
        const facts = await upgrade(client, place)
        await requireMoved(client, place)
        await requireRights(client, place)
        warnOf(facts, log, place)
      })
      return database
    } catch (error) {
      const message = reasonOf(error)
      if (passes(error) && performance.now() < until) {
        if (!told) log.warn({ database: place, why: message, seconds: patience / 1_000 }, 'waiting for the database')
        await new Promise(resolve => setTimeout(resolve, PAUSE))
        continue
      }
      await database.close()
      if (error instanceof CannotOpen) throw error
      throw new CannotOpen(`${place} cannot be used: ${message}`)
    }
  }
}

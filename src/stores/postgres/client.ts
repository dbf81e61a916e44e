import pg from 'pg'
import type { Log } from '../../waitlist/ports/log.ts'
import { StoreUnavailable } from '../../waitlist/ports/signups.ts'
import { asUnavailable, hadNoEffect, isStale, passes } from './errors.ts'

/** Connections to a PostgreSQL server, or to a pooler in front of it. */
export interface Postgres {
  /**
   * Runs one statement, which commits by itself. After a temporary failure (a lost connection, a restart, a deadlock) it
   * is tried again for a short while.
   *
   * @throws {StoreUnavailable} when the failure lasts.
   */
  run<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * The same for several statements on one connection, each of which commits by itself. All of them are tried again;
   * `again` then says that an earlier try may have taken effect. `within`: milliseconds in which all must end; only
   * the wait for a connection may take longer.
   */
  attempt<T>(use: (query: Query, again: boolean) => Promise<T>, within?: number): Promise<T>
  /** Lends one connection for several statements, which are not tried again. */
  lend<T>(use: (client: pg.ClientBase) => Promise<T>): Promise<T>
  /** The same for as long as the borrower likes. */
  borrow(): Promise<Borrowed>
  close(): Promise<void>
}

export interface Borrowed {
  readonly client: pg.ClientBase
  release(): void
}

export type Query = Postgres['run']

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=…`, as in libpq; one host, and no TLS without `sslmode`. */
  readonly url: string
  /** The most connections at once. */
  readonly connections?: number | undefined
  /** Milliseconds for one statement. */
  readonly timeout?: number
  readonly log: Log
}

/** Milliseconds, including the wait in the pool's queue. */
const CONNECT_TIMEOUT = 1_500
/** Milliseconds. Short enough for a second try, since the first may wait for a server that is gone. */
const QUERY_TIMEOUT = 2_500
/** Milliseconds in which retries begin, and in which all ends: signups wait at most 5 s for the store. */
const RETRY_FOR = 3_000
const END = 4_500
const LONGEST_PAUSE = 250
/** Milliseconds without a failure after which an outage is over: on a full disk, what has nothing to write succeeds. */
const OVER = 5_000

/** Opens no connection yet. */
export function postgres({ url, connections = 10, timeout = QUERY_TIMEOUT, log }: PostgresOptions): Postgres {
  const end = Math.max(END, RETRY_FOR + timeout - 1_000)
  let connectionString = asLibpq(url)
  /** Timeouts on the server, so that statements that nobody waits for any more hold no locks. */
  let onServer: object = {
    statement_timeout: timeout - 100,
    lock_timeout: Math.min(2_000, timeout - 200),
    idle_in_transaction_session_timeout: 10_000,
  }
  let pool = open()
  let closed = false
  /** An outage that lasts: when it began, and when something failed last. */
  let outage: { readonly since: number; readonly failedAt: number } | undefined

  function open(): pg.Pool {
    const made = new pg.Pool({
      connectionString,
      ...onServer,
      Client: Connection,
      types,
      max: connections,
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      query_timeout: timeout,
      keepAlive: true,
      idleTimeoutMillis: 60_000,
      application_name: 'waitlist',
    })
    // Without a listener, losing a connection in use would end the process. Its statement fails anyway.
    made.on('connect', client => client.on('error', () => {}))
    // An idle connection was lost, and usually the others with it. New ones are made on demand.
    made.on('error', error => {
      if (made !== pool || closed) return
      log.warn({ why: error.message }, 'a connection to the database was lost')
      renew()
    })
    return made
  }

  /** Starts a new pool. Connections in use are closed when they are returned. */
  function renew(): void {
    const old = pool
    pool = open()
    old.end().catch(() => {})
  }

  /** Drops what the other side does not support, if that is safe. True: try again without it. */
  function withoutExtras({ message }: Error): boolean {
    // PgBouncer refuses what it cannot pass on. Our own timeouts remain.
    if (/unsupported startup parameter/.test(message)) onServer = {}
    else if (/does not support SSL/.test(message) && /sslmode=prefer/.test(connectionString)) {
      connectionString = connectionString.replace('sslmode=prefer', 'sslmode=disable')
    } else return false
    return true
  }

  async function connected(from = pool): Promise<{ client: pg.PoolClient; from: pg.Pool }> {
    if (closed) throw new StoreUnavailable('the store is closed')
    try {
      return { client: await from.connect(), from }
    } catch (error) {
      if (from === pool) {
        if (!withoutExtras(error as Error)) throw error
        renew()
      }
      return { client: await pool.connect(), from: pool }
    }
  }

  async function lend<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const { client, from } = await connected()
    try {
      const result = await use(client)
      client.release()
      return result
    } catch (error) {
      // Its state is unknown, so it is not used again.
      client.release(true)
      if (from === pool && !closed && isStale(error)) renew()
      throw error
    }
  }

  async function attempt<T>(use: (query: Query, again: boolean) => Promise<T>, within?: number): Promise<T> {
    const began = performance.now()
    const until = began + (within ?? end)
    let again = false
    for (let number = 1; ; number++) {
      let sent = false
      try {
        const result = await lend(client =>
          use(async (text, values = []) => {
            sent = true
            const left = Math.max(1, until - performance.now())
            const query = { text, values: [...values], query_timeout: Math.min(timeout, left) }
            return (await client.query(query)).rows
          }, again),
        )
        if (outage !== undefined && performance.now() - outage.failedAt > OVER) {
          const seconds = Math.round((outage.failedAt - outage.since) / 1_000)
          outage = undefined
          log.info({ seconds }, 'the database is used again')
        }
        return result
      } catch (error) {
        if (closed) throw new StoreUnavailable('the store is closed')
        again ||= sent && !hadNoEffect(error)
        // Full jitter, so that statements that failed together are not retried together.
        const pause = Math.random() * Math.min(LONGEST_PAUSE, 10 * 2 ** number)
        if (!passes(error) || performance.now() - began + pause > (within ?? RETRY_FOR)) {
          const told = asUnavailable(error)
          if (told instanceof StoreUnavailable) {
            if (outage === undefined) log.warn({ why: told.message }, 'the database cannot be used')
            outage = { since: outage?.since ?? began, failedAt: performance.now() }
          }
          throw told
        }
        await new Promise(resolve => setTimeout(resolve, pause))
      }
    }
  }

  function borrow(): Promise<Borrowed> {
    const { promise: over, resolve: release } = Promise.withResolvers<void>()
    return new Promise((resolve, reject) => {
      const lent = lend(client => {
        resolve({ client, release })
        return over
      })
      lent.catch(reject)
    })
  }

  return {
    run: (text, values) => attempt(query => query(text, values)),
    attempt,
    lend,
    borrow,
    async close() {
      if (closed) return
      closed = true
      await pool.end()
    },
  }
}

/** As SQLite returns them: numbers as numbers, times in milliseconds since 1970, JSON as it was written. */
const asInSqlite = new Map<number, (text: string) => unknown>([
  [pg.types.builtins.INT8, Number],
  [pg.types.builtins.NUMERIC, Number],
  [pg.types.builtins.TIMESTAMPTZ, text => Number(pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ)(text))],
  [pg.types.builtins.JSON, text => text],
])
const types: pg.CustomTypesConfig = {
  getTypeParser: (type: number) => asInSqlite.get(type) ?? pg.types.getTypeParser(type),
}

/** `sslmode` has the meaning of libpq and psql, not of `pg`; `allow` is treated as `prefer`. */
function asLibpq(url: string): string {
  const parsed = new URL(url)
  const mode = parsed.searchParams.get('sslmode')
  if (mode === null) return url
  parsed.searchParams.set('sslmode', mode === 'allow' ? 'prefer' : mode)
  parsed.searchParams.set('uselibpqcompat', 'true')
  return parsed.href
}

/** `pg` leaves a connection open after a handshake that failed on this side, which would keep the process alive. */
class Connection extends pg.Client {
  // Only the pool calls it, in this form.
  override connect(done?: unknown): never {
    const connected = (error: Error) => {
      if (error) this.connection.stream.destroy()
      if (typeof done === 'function') done(error)
    }
    return super.connect(connected) as never
  }
}

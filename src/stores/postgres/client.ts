import { createHash } from 'node:crypto'
import pg from 'pg'
import { type Log, StoreUnavailable } from '../../waitlist/ports.ts'
import { Connection } from './connection.ts'
import { asUnavailable, hadNoEffect, isStale, isTimeout, isUnprepared, passes } from './errors.ts'
import { requireCommits } from './server.ts'

/** Talks to one PostgreSQL server, or whatever stands in front of it. */
export interface Postgres {
  /**
   * Runs one statement, which commits by itself. What passes (a lost connection, a restart, a deadlock) is tried again
   * for a short while; `again` then says that an earlier try may have taken effect.
   *
   * @throws {StoreUnavailable} when it did not pass in time.
   */
  run<Row>(statement: (again: boolean) => Statement<Row>): Promise<readonly Row[]>
  /** The same for several statements, one after the other, each of which commits by itself. All are tried again. */
  attempt<T>(use: (query: Query, again: boolean) => Promise<T>): Promise<T>
  /** Lends one connection for several statements; not tried again. */
  lend<T>(use: (client: pg.ClientBase) => Promise<T>): Promise<T>
  /** The same for as long as the borrower likes. */
  borrow(): Promise<Borrowed>
  close(): Promise<void>
}

export interface Borrowed {
  readonly client: pg.ClientBase
  release(): void
}

/** `_Row` says what its rows look like. */
export interface Statement<_Row> {
  readonly text: string
  readonly values: readonly unknown[]
  /** Parsed and planned once for each connection: only where the best plan is the same however large the tables grow. */
  readonly prepared?: true
}

export type Query = <Row>(statement: Statement<Row>) => Promise<readonly Row[]>

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=…`, as libpq reads it; one host, and no TLS without `sslmode`. */
  readonly url: string
  /** Connections at once. */
  readonly connections?: number
  /** Milliseconds for one statement. */
  readonly timeout?: number
  readonly log: Log
}

/** Milliseconds. The pool's own waiting line counts as connecting. */
const CONNECT_TIMEOUT = 1_500
/** Short enough that a second try is possible, since the first may wait for a server that is gone. */
const QUERY_TIMEOUT = 2_500
/** For how long what passes is tried again, and when all is over; signups wait at most 5 s for the store. */
const PATIENCE = 3_000
const END = 4_500
const LONGEST_PAUSE = 250

/** Opens no connection yet. */
export function postgres({ url, connections = 10, timeout = QUERY_TIMEOUT, log }: PostgresOptions): Postgres {
  const end = Math.max(END, PATIENCE + timeout - 1_000)
  let connectionString = asLibpq(url)
  /** On the server, so that what nobody waits for any more does not hold locks. */
  let onServer: object = {
    statement_timeout: timeout - 100,
    lock_timeout: Math.min(2_000, timeout - 200),
    idle_in_transaction_session_timeout: 10_000,
  }
  /** False: prepared statements get lost, as behind a PgBouncer that does not know of them. */
  let prepares = true
  /** A statement was not answered in time: its commit may wait for a standby, on a connection that the server keeps. */
  let hung = false
  let pool = open()
  let closed = false
  /** Since when, where the last statement found no database. */
  let awaySince: number | undefined

  function open(): pg.Pool {
    const made = new pg.Pool({
      connectionString,
      ...onServer,
      Client: Connection,
      max: connections,
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      query_timeout: timeout,
      keepAlive: true,
      idleTimeoutMillis: 60_000,
      application_name: 'waitlist',
    })
    // Without a listener the loss of a connection that is in use would end the process; its statement is told anyway.
    made.on('connect', client => client.on('error', () => {}))
    // An idle connection was lost, and the others with it, as a rule. New ones are made when they are needed.
    made.on('error', error => {
      if (made !== pool || closed) return
      log.warn({ why: error.message }, 'a connection to the database was lost')
      renew()
    })
    return made
  }

  /** Connects anew. What is in use is closed when it comes back. */
  function renew(): void {
    const old = pool
    pool = open()
    old.end().catch(() => {})
  }

  /** Gives up what the other side does not know, where that is no loss of safety. True: try again without it. */
  function withoutExtras({ message }: Error): boolean {
    // PgBouncer refuses what it cannot pass on. The timeouts of this side remain.
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
      // Whatever state the connection is in, it is not used again.
      client.release(true)
      if (from === pool && !closed && isStale(error)) renew()
      throw error
    }
  }

  async function attempt<T>(use: (query: Query, again: boolean) => Promise<T>): Promise<T> {
    const began = performance.now()
    let again = false
    for (let number = 1; ; number++) {
      let sent = false
      let named = false
      try {
        const result = await lend(async client => {
          if (hung) await requireCommits(client)
          hung = false
          return use(async ({ text, values, prepared }) => {
            sent = true
            named = prepared === true && prepares
            const left = Math.max(1, began + end - performance.now())
            const query = { text, values: [...values], query_timeout: Math.min(timeout, left) }
            return (await client.query(named ? { ...query, name: nameOf(text) } : query)).rows
          }, again)
        })
        if (awaySince !== undefined) {
          const seconds = Math.round((performance.now() - awaySince) / 1_000)
          awaySince = undefined
          log.info({ seconds }, 'the database is used again')
        }
        return result
      } catch (error) {
        if (closed) throw new StoreUnavailable('the store is closed')
        if (named && isUnprepared(error)) {
          prepares = false
          continue
        }
        hung ||= sent && isTimeout(error)
        again ||= sent && !hadNoEffect(error)
        // Full jitter, so that those who failed together do not come back together.
        const pause = Math.random() * Math.min(LONGEST_PAUSE, 10 * 2 ** number)
        if (!passes(error) || performance.now() - began + pause > PATIENCE) {
          const told = asUnavailable(error)
          if (awaySince === undefined && told instanceof StoreUnavailable) {
            awaySince = began
            log.warn({ why: told.message }, 'the database cannot be used')
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
    run: statement => attempt((query, again) => query(statement(again))),
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

/** `sslmode` means what it means to libpq and psql, not what `pg` made of it; `allow` is taken for `prefer`. */
function asLibpq(url: string): string {
  const parsed = new URL(url)
  const mode = parsed.searchParams.get('sslmode')
  if (mode === null) return url
  parsed.searchParams.set('sslmode', mode === 'allow' ? 'prefer' : mode)
  parsed.searchParams.set('uselibpqcompat', 'true')
  return parsed.href
}

const names = new Map<string, string>()

/** The same text has the same name everywhere: behind a pooler, programs of two releases may share a connection. */
function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('hex').slice(0, 32)
    names.set(text, name)
  }
  return name
}

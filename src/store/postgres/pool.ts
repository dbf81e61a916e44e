import pg from 'pg'
import { OperatorError } from '../../config/operator.ts'
import { StoreUnavailable, type Value } from '../database.ts'

/** Runs one statement, or several without values. `timeout`: milliseconds, if not those of the pool. */
export type Query = (text: string, values?: readonly Value[], timeout?: number) => Promise<pg.QueryResult>

/** Milliseconds, including the wait for one that is in use. */
const CONNECT_TIMEOUT = 1_500
const CONNECTIONS = 10

pg.types.setTypeParser(pg.types.builtins.INT8, Number)

/** Connections to a PostgreSQL server, or to a pooler in front of it. `timeout`: milliseconds for one statement. */
export function poolOf(url: string, timeout: number) {
  let pool = open()
  let isClosed = false

  function open(): pg.Pool {
    const opened = new pg.Pool({
      connectionString: withLibpqModes(url),
      Client,
      max: CONNECTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      query_timeout: timeout,
      keepAlive: true,
      idleTimeoutMillis: 60_000,
      application_name: 'waitlist',
    })
    // Without listeners, a lost connection would end the process. If it is in use, its statement fails.
    opened.on('connect', client => client.on('error', () => {}))
    opened.on('error', () => {})
    return opened
  }

  return {
    /** Lends a connection. After an error its state is unknown, so it is closed, and the server rolls back. */
    async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
      if (isClosed) throw new StoreUnavailable('the store is closed')
      const from = pool
      const client = await from.connect().catch(fail)
      const query: Query = (text, values = [], query_timeout = timeout) =>
        client.query({ text, values: [...values], query_timeout } as pg.QueryConfig).catch(fail)
      try {
        const result = await work(query)
        client.release()
        return result
      } catch (error) {
        client.release(true)
        // The others most likely lead nowhere, too.
        if (from === pool && !isClosed && error instanceof PostgresUnavailable && error.isLost) {
          pool = open()
          from.end().catch(() => {})
        }
        throw error
      }
    },
    async close(): Promise<void> {
      if (isClosed) return
      isClosed = true
      await pool.end()
    },
  }
}

/** The server failed or did not answer. */
export class PostgresUnavailable extends StoreUnavailable {
  /** The connection is lost, or leads to a server that takes no writes. A commit may have taken effect. */
  readonly isLost: boolean
  /** Another try may succeed. */
  readonly isTransient: boolean

  /** `state`: SQLSTATE; undefined: nothing came from the server. */
  constructor(reason: string, state: string | undefined) {
    super(state === undefined ? reason : `${reason} (${state})`)
    this.isLost = state === undefined || /^(08|25006|57P)/.test(state)
    // Connection, transaction state, rollback, lock timeout, intervention, too many connections.
    this.isTransient = state === undefined || /^(08|25|40|55|57|53300)/.test(state)
  }
}

/** Data, constraint and syntax errors are our bugs. A missing right or table is not. */
const isBug = /^(22|23|42(?!501|P01))/

/** The details that PostgreSQL adds to its message are dropped: they may contain a name and an address. */
function fail(error: Error): never {
  const state = error instanceof pg.DatabaseError ? error.code : undefined
  if (state !== undefined && isBug.test(state)) throw new Error(`PostgreSQL: ${error.message} (${state})`)
  if (/password must be a/.test(error.message))
    throw new OperatorError('PostgreSQL asks for a password, and DATABASE_URL has none.')
  throw new PostgresUnavailable(error.message, state)
}

/** `sslmode` as libpq and psql understand it. */
function withLibpqModes(url: string): string {
  const parsed = new URL(url)
  if (parsed.searchParams.has('sslmode')) parsed.searchParams.set('uselibpqcompat', 'true')
  return parsed.href
}

/** `pg` leaves a connection open after a handshake that failed on this side, which would keep the process alive. */
class Client extends pg.Client {
  // The pool calls it in this form only.
  override connect(done?: unknown): never {
    const connected = (error?: Error) => {
      if (error) this.connection.stream.destroy()
      ;(done as (error?: Error) => void)(error)
    }
    return super.connect(connected as never) as never
  }
}

import pg from 'pg'
import type { Log } from '../../config/operator.ts'
import { StoreUnavailable } from '../database.ts'
import { isStale } from './errors.ts'

/** Connections to a PostgreSQL server, or to a pooler in front of it. None is opened before it is needed. */
interface Pool {
  /** Lends a connection. After an error its state is unknown, so it is closed, and the server rolls back. */
  lend<T>(use: (client: pg.ClientBase) => Promise<T>): Promise<T>
  readonly isClosed: () => boolean
  close(): Promise<void>
}

interface PoolOptions {
  /** `postgres://user:password@host:port/database?sslmode=…`, as in libpq; one host, and no TLS without `sslmode`. */
  readonly url: string
  /** The most connections at once. */
  readonly connections: number
  /** Milliseconds for one statement. */
  readonly timeout: number
  readonly log: Pick<Log, 'warn'>
}

/** Milliseconds, including the wait in the pool's queue. */
const CONNECT_TIMEOUT = 1_500

/** Numbers as numbers. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (type: number) =>
    [pg.types.builtins.INT8, pg.types.builtins.NUMERIC].includes(type) ? Number : pg.types.getTypeParser(type),
}

export function poolOf({ url, connections, timeout, log }: PoolOptions): Pool {
  let connectionString = asLibpq(url)
  /** Timeouts on the server, so that statements that nobody waits for any more hold no locks. */
  let onServer: object = {
    statement_timeout: timeout - 100,
    lock_timeout: Math.min(2_000, timeout - 200),
    idle_in_transaction_session_timeout: 10_000,
  }
  let pool = open()
  let closed = false

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

  return {
    async lend(use) {
      const { client, from } = await connected()
      try {
        const result = await use(client)
        client.release()
        return result
      } catch (error) {
        client.release(true)
        if (from === pool && !closed && isStale(error)) renew()
        throw error
      }
    },
    isClosed: () => closed,
    async close() {
      if (closed) return
      closed = true
      await pool.end()
    },
  }
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

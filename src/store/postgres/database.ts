import { setTimeout as sleep } from 'node:timers/promises'
import { type Log, summary } from '../../config/operator.ts'
import { type Database, type Dialect, type Row, StoreUnavailable, type Tx } from '../database.ts'
import { storeName } from '../open.ts'
import { PostgresUnavailable, poolOf, type Query } from './pool.ts'

/** Milliseconds for a statement that reads what takes long. */
const LONG_READ = 10_000
/** Milliseconds in which retries begin: signups wait at most 5 s for the store. */
const RETRY_FOR = 3_000
const LONGEST_PAUSE = 250
/** Milliseconds from the begin of a transaction to its commit: with the commit itself less than `LAG` of notify/channel.ts. */
const TRANSACTION = 6_000

/**
 * The text that begins a transaction and returns the time. It sets what the transaction relies on, since PgBouncer passes no
 * other settings on: timeouts on the server, so that a statement that nobody waits for any more holds no locks.
 */
function beginning(mode: string, timeout: number, more: string): string {
  const settings = {
    statement_timeout: timeout - 100,
    lock_timeout: 2_000,
    idle_in_transaction_session_timeout: 10_000,
  }
  const set = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', true)`)
  return `begin isolation level ${mode}; select ${set.join()}, ${more}, (extract(epoch from clock_timestamp()) * 1000)::bigint as now`
}

/** What is answered is synced, even where the role or the database says `synchronous_commit = off`. */
const SYNCED =
  "case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end"
/** Compiling a statement takes longer than running it. */
const NOT_COMPILED = "set_config('jit', 'off', true)"

const dialect: Dialect = {
  among: (value, parameter) => `${value} = any(${parameter})`,
  rows(parameter, columns) {
    const typed = Object.entries(columns).map(([column, type]) => `${column} ${type}`)
    return `(select * from json_to_recordset(${parameter}::json) as given (${typed.join(', ')}))`
  },
  forUpdate: 'for update',
  skipLocked: table => `for update of ${table} skip locked`,
  nextNumber: table =>
    `select setval(pg_get_serial_sequence('${table}', 'number'), coalesce(max(number), 0) + 1, false) from ${table}`,
}

/** The transaction that is open on a connection. */
function txOn(query: Query, now: number, again: boolean): Tx {
  function insert(table: string, rows: readonly Row[], ending: string) {
    const columns = Object.keys(rows[0]!).join(', ')
    const values = `select ${columns} from json_populate_recordset(null::${table}, $1::json)`
    return query(`insert into ${table} (${columns}) ${values} ${ending}`, [JSON.stringify(rows)])
  }
  return {
    dialect,
    now,
    again,
    all: async <Result>(text: string, values?: Parameters<Query>[1]) => (await query(text, values)).rows as Result[],
    run: async (text, values) => (await query(text, values)).rowCount ?? 0,
    async insert(table, rows, ending = '') {
      if (rows.length > 0) await insert(table, rows, ending)
    },
    async insertNew(table, rows, column, { contended = false } = {}) {
      if (rows.length === 0) return new Map()
      // Two that insert the same values in other orders would wait for each other.
      const order = contended ? `order by ${column} collate "C"` : ''
      const ending = `${order} on conflict (${column}) do nothing returning number, ${column} as key`
      const added: readonly { readonly key: string; readonly number: number }[] = (await insert(table, rows, ending))
        .rows
      return new Map(added.map(({ key, number }) => [key, number]))
    },
  }
}

export interface PostgresOptions {
  readonly url: string
  readonly log: Pick<Log, 'warn'>
  /** Milliseconds for one statement. */
  readonly timeout: number
  /** Milliseconds since 1970. Without it the server's clock is used, which all instances share. */
  readonly clock?: (() => number) | undefined
}

interface Retries {
  readonly repeatable?: boolean
  /** Milliseconds in which retries begin. */
  readonly retryFor?: number
}

/** No connection is opened before it is needed. */
export function connect({ url, log, timeout, clock }: PostgresOptions) {
  const pool = poolOf(url, timeout)
  const readTimeout = Math.max(LONG_READ, timeout)
  const toWrite = beginning('read committed', timeout, SYNCED)
  const toRead = beginning('repeatable read read only', readTimeout, NOT_COMPILED)
  const logFailure = summary<Error>((failures, { message }) =>
    log.warn({ why: message, failures }, 'the database cannot be used'),
  )

  async function begin(query: Query, text: string): Promise<number> {
    const results = (await query(text)) as unknown as readonly { readonly rows: readonly { now: number }[] }[]
    return clock?.() ?? results.at(-1)!.rows[0]!.now
  }

  async function transaction<T>(
    use: (tx: Tx) => Promise<T>,
    { repeatable = true, retryFor = RETRY_FOR }: Retries = {},
  ): Promise<T> {
    const retryUntil = performance.now() + retryFor
    let again = false
    for (let number = 1; ; number++) {
      let isCommitting = false
      try {
        return await pool.use(async query => {
          const now = await begin(query, toWrite)
          const begun = performance.now()
          const result = await use(txOn(query, now, again))
          if (repeatable && performance.now() - begun > TRANSACTION)
            throw new StoreUnavailable('the transaction took too long')
          isCommitting = true
          await query('commit')
          return result
        })
      } catch (error) {
        if (!(error instanceof PostgresUnavailable)) throw error
        again ||= isCommitting && error.isLost
        // Full jitter, so that transactions that failed together are not tried again together.
        const pause = Math.random() * Math.min(LONGEST_PAUSE, 10 * 2 ** number)
        const mayRetry = error.isTransient && (repeatable || !again) && performance.now() + pause < retryUntil
        if (error.isLost || !mayRetry) logFailure(error)
        if (!mayRetry) throw error
        await sleep(pause)
      }
    }
  }

  const database: Database = {
    name: storeName({ kind: 'postgres', url }),
    transaction,
    read: use =>
      pool.use(async query => {
        const longer: Query = (text, values) => query(text, values, readTimeout)
        const now = await begin(longer, toRead)
        const result = await use(txOn(longer, now, false))
        await query('commit')
        return result
      }),
    // A restart or a failover is temporary, and what was committed stays committed.
    failure: new Promise(() => {}),
    requireRoom() {},
    async truncateWal() {},
    close: pool.close,
  }
  return { ...database, transaction }
}

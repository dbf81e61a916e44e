import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { type Log, OperatorError } from '../../config/operator.ts'
import { type Database, type Dialect, type Row, StoreUnavailable, type Tx, type Value } from '../database.ts'
import { storeName } from '../location.ts'
import { asUnavailable, hadNoEffect, passes, reasonOf } from './errors.ts'
import { poolOf } from './pool.ts'
import { prepareSchema, requireSchema } from './schema.ts'

interface PostgresOptions {
  readonly url: string
  readonly log: Log
  /** The most connections at once. */
  readonly connections?: number
  /** Milliseconds that opening waits for the database, which may have been started at the same time. */
  readonly patience?: number
  /** Milliseconds since 1970. Without it the server's clock is used, which all instances share. */
  readonly clock?: (() => number) | undefined
}

const CONNECTIONS = 10
/** Milliseconds for one statement. Short enough for a second try, since the first may wait for a server that is gone. */
const STATEMENT = 2_500
/** Milliseconds in which retries begin: signups wait at most 5 s for the store. */
const RETRY_FOR = 3_000
const LONGEST_PAUSE = 250
/** Milliseconds from the begin of a transaction to its commit: with the commit itself less than `LAG` of notify/channel.ts. */
const TRANSACTION = 6_000
/** The same as `STATEMENT` for a command, for which no visitor waits. */
const COMMAND_STATEMENT = 60_000
/** Milliseconds for a statement that reads what takes long. */
const LONG_READ = 10_000
const PATIENCE = 15_000
const OPEN_PAUSE = 500
/** Milliseconds without a failure after which an outage is over: on a full disk, what has nothing to write succeeds. */
const OVER = 5_000

const CLOCK = '(extract(epoch from clock_timestamp()) * 1000)::bigint as now'

/**
 * After a wait a transaction must see what was committed, whatever the role or the database says; and it is synced before it
 * is answered, even if they say `synchronous_commit = off`. Set here and not for the session, which PgBouncer may share.
 */
const BEGIN =
  'begin isolation level read committed;' +
  " select case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end," +
  ` ${CLOCK}`

/** Compiling a statement takes longer than running it, and so would a wait for a lock. */
const beginReading = (longest: number) =>
  'begin isolation level repeatable read read only; set local jit = off;' +
  ` set local statement_timeout = ${longest}; set local lock_timeout = 2000; select ${CLOCK}`

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
function txOn(client: ClientBase, now: number, again: boolean, timeout: number): Tx {
  const query = (text: string, values: readonly Value[] = []) =>
    client.query({ text, values: [...values], query_timeout: timeout } as { text: string; values: unknown[] })
  return {
    dialect,
    now,
    again,
    all: async <Result>(text: string, values?: readonly Value[]) => (await query(text, values)).rows as Result[],
    run: async (text, values) => (await query(text, values)).rowCount ?? 0,
    async insert(table, rows, ending = '') {
      if (rows.length > 0) await query(inserting(table, rows, ending), [JSON.stringify(rows)])
    },
    async insertNew(table, rows, column, { contended = false } = {}) {
      if (rows.length === 0) return new Map()
      // Two that insert the same values in other orders would wait for each other.
      const order = contended ? `order by ${column} collate "C"` : ''
      const ending = `${order} on conflict (${column}) do nothing returning number, ${column} as key`
      const added: readonly { readonly key: string; readonly number: number }[] = (
        await query(inserting(table, rows, ending), [JSON.stringify(rows)])
      ).rows
      return new Map(added.map(({ key, number }) => [key, number]))
    },
  }
}

function inserting(table: string, rows: readonly Row[], ending: string): string {
  const columns = Object.keys(rows[0]!).join(', ')
  return `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $1::json) ${ending}`
}

/** Begins, and returns the time. */
async function begun(client: ClientBase, text: string, clock: (() => number) | undefined): Promise<number> {
  const results = (await client.query(text)) as unknown as readonly { readonly rows: readonly { now: number }[] }[]
  return clock?.() ?? results.at(-1)!.rows[0]!.now
}

interface Plan {
  readonly url: string
  readonly log: Log
  readonly connections: number
  /** Milliseconds for one statement. */
  readonly timeout: number
  readonly clock?: (() => number) | undefined
}

function connect({ url, log, connections, timeout, clock }: Plan) {
  const pool = poolOf({ url, connections, timeout, log })
  /** An outage that lasts: when it began, and when something failed last. */
  let outage: { readonly since: number; readonly failedAt: number } | null = null

  function works(): void {
    if (outage === null || performance.now() - outage.failedAt < OVER) return
    log.info({ seconds: Math.round((outage.failedAt - outage.since) / 1_000) }, 'the database is used again')
    outage = null
  }

  function failed(error: unknown, began: number): unknown {
    if (pool.isClosed()) return new StoreUnavailable('the store is closed')
    const unavailable = asUnavailable(error)
    if (!(unavailable instanceof StoreUnavailable)) return unavailable
    if (outage === null) log.warn({ why: unavailable.message }, 'the database cannot be used')
    outage = { since: outage?.since ?? began, failedAt: performance.now() }
    return unavailable
  }

  async function transaction<T>(use: (tx: Tx) => Promise<T>, { repeatable = true } = {}): Promise<T> {
    const began = performance.now()
    let again = false
    for (let number = 1; ; number++) {
      let isCommitting = false
      try {
        const result = await pool.lend(async client => {
          const now = await begun(client, BEGIN, clock)
          const begunAt = performance.now()
          const result = await use(txOn(client, now, again, timeout))
          if (repeatable && performance.now() - begunAt > TRANSACTION)
            throw new StoreUnavailable('PostgreSQL: the transaction took too long')
          isCommitting = true
          await client.query('commit')
          return result
        })
        works()
        return result
      } catch (error) {
        const isUnknown = isCommitting && !hadNoEffect(error)
        again ||= isUnknown
        // Full jitter, so that transactions that failed together are not tried again together.
        const pause = Math.random() * Math.min(LONGEST_PAUSE, 10 * 2 ** number)
        const mayRetry = passes(error) && (repeatable || !again) && performance.now() - began + pause < RETRY_FOR
        if (!mayRetry || pool.isClosed()) throw failed(error, began)
        await sleep(pause)
      }
    }
  }

  async function read<T>(use: (tx: Tx) => Promise<T>): Promise<T> {
    const began = performance.now()
    try {
      return await pool.lend(async client => {
        const longest = Math.max(LONG_READ, timeout)
        const result = await use(txOn(client, await begun(client, beginReading(longest - 100), clock), false, longest))
        await client.query('commit')
        return result
      })
    } catch (error) {
      throw failed(error, began)
    }
  }

  async function statement<Result>(text: string, values: readonly Value[]): Promise<readonly Result[]> {
    try {
      return await pool.lend(async client => (await client.query(text, [...values])).rows as Result[])
    } catch (error) {
      throw asUnavailable(error)
    }
  }

  return {
    pool,
    database: {
      name: storeName({ kind: 'postgres', url }),
      transaction,
      read,
      statement,
      // A restart or a failover is temporary, and what was committed stays committed.
      failure: new Promise<Error>(() => {}),
      requireRoom() {},
      async truncateLog() {},
      close: pool.close,
    } satisfies Database,
  }
}

/**
 * The database of a running service: any number of instances share it.
 *
 * @throws {OperatorError} when it cannot be reached or used as it is.
 */
export async function postgresDatabase(options: PostgresOptions): Promise<Database> {
  const { url, log, connections = CONNECTIONS, patience = PATIENCE, clock } = options
  const { pool, database } = connect({ url, log, connections, timeout: STATEMENT, clock })
  const until = performance.now() + patience
  for (let isFirst = true; ; isFirst = false) {
    try {
      await pool.lend(client => prepareSchema(client, database.name, log))
      return database
    } catch (error) {
      if (!passes(error) || performance.now() > until) {
        await pool.close()
        throw cannotUse(database.name, error)
      }
      if (isFirst) log.warn({ database: database.name, why: reasonOf(error) }, 'waiting for the database')
      await sleep(OPEN_PAUSE)
    }
  }
}

/**
 * The database of a command, beside services or without one.
 *
 * @throws {OperatorError} when it cannot be reached, or has no tables, unless they may be made.
 */
export async function postgresForCommand(url: string, { make = false } = {}): Promise<Database> {
  const silent: Log = { info() {}, warn() {}, error() {} }
  const { pool, database } = connect({ url, log: silent, connections: 1, timeout: COMMAND_STATEMENT })
  const told = async <T>(use: () => Promise<T>): Promise<T> => {
    try {
      return await use()
    } catch (error) {
      throw error instanceof StoreUnavailable ? cannotUse(database.name, error) : error
    }
  }
  try {
    await pool.lend(client =>
      make ? prepareSchema(client, database.name, silent) : requireSchema(client, database.name),
    )
  } catch (error) {
    await pool.close()
    throw cannotUse(database.name, error)
  }
  return {
    ...database,
    transaction: (use, options) => told(() => database.transaction(use, options)),
    read: use => told(() => database.read(use)),
  }
}

const cannotUse = (name: string, error: unknown): OperatorError =>
  error instanceof OperatorError ? error : new OperatorError(`${name} cannot be used: ${reasonOf(error)}`)

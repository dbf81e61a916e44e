import type { QueryConfig } from 'pg'
import type { Dialect, Kind, Lock, Sql, TransactionOptions, Value } from '../sql.ts'
import type { Postgres } from './client.ts'
import { asUnavailable } from './errors.ts'

/** $1 is a time, or null for the server's clock, which all instances share. */
export const NOW = 'coalesce($1::timestamptz, now())'
export const inMilliseconds = (parameter: string) =>
  `${NOW} + ${parameter}::double precision * interval '1 millisecond'`

/**
 * A statement that reads `durable` is synced to disk before it is answered, even if the server, the database or the role
 * says `synchronous_commit = off`. Set here and not for the session, which PgBouncer may share with others.
 */
export const DURABLE = `durable as (
  select case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end
)`

/** The number of the lock of erasures: "erasures" in ASCII. */
export const ERASURES = '7310012293695300979'
const locks: Record<Lock, string> = {
  erasures: `pg_advisory_xact_lock(${ERASURES})`,
  'erasures, shared': `pg_advisory_xact_lock_shared(${ERASURES})`,
}

const types: Record<Kind, string> = {
  whole: 'bigint',
  text: 'text',
  json: 'text',
  uuid: 'uuid',
  time: 'double precision',
  bit: 'int',
}
const writing: Partial<Record<Kind, (column: string) => string>> = {
  json: column => `${column}::json`,
  time: column => `timestamptz 'epoch' + ${column} * interval '1 millisecond'`,
  bit: column => `${column} <> 0`,
}

const dialect: Dialect = {
  now: 'now()',
  after: (time, milliseconds) => `(${time} + ${milliseconds} * interval '1 millisecond')`,
  hour: time => `date_trunc('hour', ${time} at time zone 'UTC') at time zone 'UTC'`,
  // A fast floating-point number, which minutes are exact in.
  spanOf: (time, minutes) => `floor(date_part('epoch', ${time}) / ${minutes * 60}) * ${minutes}`,
  later: (one, other) => `greatest(${one}, ${other})`,
  contains: (text, part) => `strpos(${text}, ${part}) > 0`,
  domain: email => `substr(${email}, strpos(${email}, '@') + 1)`,
  json: text => `${text}::json`,
  // For a join of very many the server would read whole tables.
  among: (value, query) => `${value} = any(array(${query}))`,
  elements: (parameter, kind) =>
    `select value::${types[kind]} as value from json_array_elements_text(${parameter}::json) as each (value)`,
  table: (parameter, columns) => {
    const all = Object.entries(columns)
    const made = all.map(([column, kind]) => `${writing[kind]?.(column) ?? column} as ${column}`)
    const given = all.map(([column, kind]) => `${column} ${types[kind]}`)
    return (
      `(select ${made.join(', ')}, ord from rows from (json_to_recordset(${parameter}::json) as (${given.join(', ')}))` +
      ` with ordinality as each (${Object.keys(columns).join(', ')}, ord))`
    )
  },
  contactNumber: null,
  forUpdate: 'for update',
  unlocked: 'for no key update skip locked',
  // With an offset, the planner does not take the groups for as many as there are rows, for which it would not count in
  // parallel; nor would it with a 0 that is yet to be made a bigint, so that one is in quotes.
  fenced: "offset '0'",
}

/** After a wait a transaction must see what was committed, whatever isolation the role or the database has by default. */
const begin = ({ lock, yields }: TransactionOptions) =>
  [
    'begin isolation level read committed',
    `with ${DURABLE} select from durable`,
    // Long before the server looks for a deadlock.
    ...(yields ? ['set local lock_timeout = 100'] : []),
    ...(lock === undefined ? [] : [`select ${locks[lock]}`]),
  ].join('; ')

/** Compiling a statement takes longer than running it, and so would a wait for a lock. */
const beginReading = (patience: number | undefined) =>
  'begin isolation level repeatable read read only; set local jit = off' +
  (patience === undefined
    ? ''
    : `; set local statement_timeout = ${patience}; set local lock_timeout = ${Math.min(2_000, patience)}`)

const inserting =
  (all: Sql['all']): Sql['insert'] =>
  async (table, columns, rows) => {
    const names = Object.keys(columns).join(', ')
    const given = dialect.table('$1', columns)
    const text = `insert into ${table} (${names}) overriding system value select ${names} from ${given} as given`
    await all(text, [JSON.stringify(rows)])
  }

/** A database as the seam. */
export const postgresSql = (database: Postgres): Sql => ({
  dialect,
  all: database.run,
  insert: inserting(database.run),
  transaction: (use, options = {}) =>
    database.attempt(async (query, again) => {
      await query(begin(options))
      const result = await use(within(query), again)
      await query('commit')
      return result
    }),
  // Not tried again: it will be asked for again.
  async snapshot(use, patience) {
    try {
      return await database.lend(async client => {
        await client.query(beginReading(patience))
        const result = await use(
          within(async <Row>(text: string, values: readonly Value[] = []) => {
            const query: QueryConfig & { query_timeout?: number | undefined } = { text, values: [...values] }
            return (await client.query({ ...query, ...(patience && { query_timeout: patience }) })).rows as Row[]
          }),
        )
        await client.query('commit')
        return result
      })
    } catch (error) {
      throw asUnavailable(error)
    }
  },
})

/** One connection that is in a transaction already. */
export function within(all: Sql['all']): Sql {
  const sql: Sql = {
    dialect,
    all,
    insert: inserting(all),
    transaction: use => use(sql, false),
    snapshot: use => use(sql),
  }
  return sql
}

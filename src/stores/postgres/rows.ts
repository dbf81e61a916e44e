import type { QueryConfig } from 'pg'
import { CannotOpen, type Log } from '../../waitlist/ports.ts'
import { storeName } from '../place.ts'
import { columnsOf, type Kind, type Row, type Source, type Table, type Target, tableNames, using } from '../rows.ts'
import { type Postgres, postgres } from './client.ts'
import { reasonOf } from './errors.ts'
import { upgrade } from './migrate.ts'
import { IS_MARKED, REMOVE_MARK, requireMoved, SET_MARK } from './moving.ts'
import { DURABLE } from './sql.ts'

interface Form {
  /** Of the parameter: an array of these. */
  readonly parameter: string
  /** The value of a column as it is in a row. */
  read(column: string): string
  /** The value of a column made from that. */
  write(value: string): string
}

const as = (parameter: string): Form => ({ parameter, read: column => column, write: value => value })

const forms: Record<Kind, Form> = {
  whole: { ...as('bigint'), read: column => `${column}::float8` },
  text: as('text'),
  uuid: { ...as('uuid'), read: column => `${column}::text` },
  // PostgreSQL counts microseconds. What is read is cut to the millisecond; what is written stays exact.
  time: {
    parameter: 'float8',
    // Before PostgreSQL 14 the seconds are a binary fraction, so they are rounded to what they were before they are cut.
    read: column => `floor(round((extract(epoch from ${column}) * 1000000)::numeric) / 1000)::float8`,
    write: value => `timestamptz 'epoch' + ${value} * interval '1 millisecond'`,
  },
  doubt: {
    parameter: 'int',
    read: column => `(${column} or token is not null)::int`,
    write: value => `${value} <> 0`,
  },
}

function statementsFor(table: Table): { readonly read: string; readonly write: string } {
  const columns = columnsOf(table)
  const names = columns.map(([column]) => column)
  const [key] = names
  const values = columns.map(([column, kind]) => `${forms[kind].read(column)} as ${column}`)
  const parameters = columns.map(([, kind], i) => `$${i + 1}::${forms[kind].parameter}[]`)
  const made = columns.map(([column, kind]) => forms[kind].write(column))
  const numbered = key === 'number'
  // Nothing happens where a row is there already: an earlier try, or an earlier move that was killed, may have written it
  // after it was looked for. Should it be another row, the checksums will tell.
  const insert =
    `insert into ${table} (${names.join(', ')})${numbered ? ' overriding system value' : ''}` +
    ` select ${made.join(', ')} from unnest(${parameters.join(', ')}) as t (${names.join(', ')})` +
    ` on conflict do nothing returning ${key}`
  // With the rows, so that whoever joins after a move that was cut off gets another number.
  const end = numbered ? `setval(pg_get_serial_sequence('${table}', 'number'), max(number))` : 'count(*)'
  return {
    read: `select ${values.join(', ')} from ${table} where ${key} > $1::bigint order by ${table}.${key} limit $2`,
    write: `with added as (${insert}), ${DURABLE} select ${end} from added cross join durable`,
  }
}

const statements = Object.fromEntries(tableNames.map(table => [table, statementsFor(table)])) as Record<
  Table,
  ReturnType<typeof statementsFor>
>

/** A restarted server has another start, so this is good for as long as a move takes. */
const IDENTITY =
  "select concat(pg_postmaster_start_time(), '/', oid) as identity from pg_database where datname = current_database()"

/** Every insert, update and delete changes the count, or the sum of the transactions that wrote the rows. */
const STATE = `select concat_ws(',', ${tableNames
  .map(table => `(select concat(count(*), '/', sum(xmin::text::bigint)) from ${table})`)
  .join(', ')}) as state`

/** Milliseconds for one statement. Nobody waits for an answer here, and a server may be slow. */
const STATEMENT = 60_000
/** The same for what reads a whole table, and for a transaction that lasts as long as the move. */
const LONG = 3_600_000

const silent: Log = { info() {}, warn() {}, error() {} }

/**
 * Opens a database to move from. What is read is what it held at this moment.
 *
 * @throws {CannotOpen} also when there is no waitlist in it.
 */
export function postgresSource(url: string): Promise<Source> {
  return open(url, async (database, name) => {
    const { client, release } = await database.borrow()
    const one = async (text: string) => {
      const patient: QueryConfig & { query_timeout: number } = { text, query_timeout: LONG }
      return (await client.query(patient)).rows[0]
    }
    try {
      const { there } = await one("select to_regclass('waitlist_schema') is not null as there")
      if (!there) throw new CannotOpen(`There is no waitlist in ${name}: DATABASE_URL names the database to move from.`)
      await upgrade(client, name)
      await requireMoved(client, name)
      const begin = async () => {
        await client.query('begin isolation level repeatable read read only')
        await client.query(`set local statement_timeout = ${LONG}`)
        await client.query(`set local idle_in_transaction_session_timeout = ${LONG}`)
      }
      await begin()
      const { identity } = await one(IDENTITY)
      const { state } = await one(STATE)
      const use = using(name)
      return {
        name,
        identity,
        count: table => use(async () => (await one(`select count(*)::float8 as rows from ${table}`)).rows),
        read: (table, after, most) =>
          use(async () => {
            const { rows } = await client.query({
              text: statements[table].read,
              values: [after, most],
              rowMode: 'array',
            })
            return rows as unknown as Row[]
          }),
        changed: () =>
          use(async () => {
            await client.query('commit')
            await begin()
            return (await one(STATE)).state !== state
          }),
        async close() {
          release()
          await database.close()
        },
      }
    } catch (error) {
      release()
      throw error
    }
  })
}

/** Opens a database to move to, and makes its tables where there are none. */
export function postgresTarget(url: string): Promise<Target> {
  return open(url, async (database, name) => {
    const { identity } = await database.lend(async client => {
      await upgrade(client, name)
      return (await client.query(IDENTITY)).rows[0]
    })
    const use = using(name)
    const isMarked = async () =>
      (await database.run<{ marked: boolean }>(() => ({ text: IS_MARKED, values: [] })))[0]?.marked
    return {
      name,
      identity,
      begin: () =>
        use(async () => {
          if (!(await isMarked())) await database.run(() => ({ text: SET_MARK, values: [] }))
        }),
      end: () =>
        use(async () => {
          if (await isMarked()) await database.run(() => ({ text: REMOVE_MARK, values: [] }))
        }),
      read: (table, after, most) =>
        use(async () => {
          const { read: text } = statements[table]
          const rows = await database.run<Record<string, Row[number]>>(() => ({ text, values: [after, most] }))
          return rows.map(row => Object.values(row) as unknown as Row)
        }),
      write: (table, rows) =>
        use(async () => {
          const values = columnsOf(table).map((_, i) => rows.map(row => row[i]))
          await database.run(() => ({ text: statements[table].write, values }))
        }),
      close: () => database.close(),
    }
  })
}

async function open<T>(url: string, make: (database: Postgres, name: string) => Promise<T>): Promise<T> {
  const name = storeName({ kind: 'postgres', url })
  const database = postgres({ url, connections: 1, timeout: STATEMENT, log: silent })
  try {
    return await make(database, name)
  } catch (error) {
    await database.close()
    throw error instanceof CannotOpen ? error : new CannotOpen(`${name} cannot be used: ${reasonOf(error)}`)
  }
}

import { setTimeout as wait } from 'node:timers/promises'
import type { ClientBase, QueryConfig, QueryResultRow } from 'pg'
import { OperatorError } from '../../waitlist/ports/log.ts'
import {
  columnsOf,
  forTables,
  type Kind,
  notEmpty,
  type Row,
  type Source,
  type Table,
  type Target,
  tableNames,
  using,
} from '../rows.ts'
import type { Postgres } from './client.ts'
import { nameOf, open, STATEMENT } from './engine.ts'
import { reasonOf } from './errors.ts'
import { isCurrent, LOCK_SCHEMA, upgrade, upgradeWithin } from './schema.ts'
import { requireFit, requireRights } from './server.ts'

interface Form {
  /** The type of the parameter's elements. */
  readonly parameter: string
  /** Reads a column into the value of a row. */
  read(column: string): string
  /** Makes a column's value from that of a row. */
  write(value: string): string
}

const as = (parameter: string): Form => ({ parameter, read: column => column, write: value => value })

const forms: Record<Kind, Form> = {
  whole: { ...as('bigint'), read: column => `${column}::float8` },
  text: as('text'),
  json: { parameter: 'text', read: column => `${column}::text`, write: value => `${value}::json` },
  uuid: { ...as('uuid'), read: column => `${column}::text` },
  // PostgreSQL counts microseconds. They are cut to milliseconds on reading.
  time: {
    parameter: 'float8',
    // Before PostgreSQL 14 the epoch is a binary fraction, so it is rounded to microseconds before it is cut.
    read: column => `floor(round((extract(epoch from ${column}) * 1000000)::numeric) / 1000)::float8`,
    write: value => `timestamptz 'epoch' + ${value} * interval '1 millisecond'`,
  },
  doubt: {
    parameter: 'int',
    read: column => `(${column} or token is not null)::int`,
    write: value => `${value} <> 0`,
  },
}

const statements = forTables(table => {
  const columns = columnsOf(table)
  const names = columns.map(([column]) => column)
  const values = columns.map(([column, kind]) => `${forms[kind].read(column)} as ${column}`)
  const parameters = columns.map(([, kind], i) => `$${i + 1}::${forms[kind].parameter}[]`)
  const made = columns.map(([column, kind]) => forms[kind].write(column))
  return {
    read: `select ${values.join(', ')} from ${table} where number > $1::bigint order by ${table}.number limit $2`,
    write:
      `insert into ${table} (${names.join(', ')}) overriding system value` +
      ` select ${made.join(', ')} from unnest(${parameters.join(', ')}) as t (${names.join(', ')})`,
  }
})

/** A restarted server has another start time, but a move does not outlast a restart. */
const IDENTITY =
  "select concat(pg_postmaster_start_time(), '/', oid) as identity from pg_database where datname = current_database()"

/** Every insert, update and delete changes the count, or the sum of the ids of the transactions that wrote the rows. */
const STATE = `select concat_ws(',', ${tableNames
  .map(table => `(select concat(count(*), '/', sum(xmin::text::bigint)) from ${table})`)
  .join(', ')}) as state`

const sequenceOf = (table: Table): string => `pg_get_serial_sequence('${table}', 'number')`

/** Milliseconds for statements that read a whole table. */
const LONG = 3_600_000
/** Milliseconds that the server waits for the next statement while the other side is read. */
const IDLE = 600_000
/** Milliseconds that a move waits for other writers of its target. A signup takes a few. */
const LOCK_TIMEOUT = 2_000
/** Milliseconds for finding out what became of a commit. */
const ASKING = 15_000

/**
 * Opens a snapshot of a database to move from.
 *
 * @throws {OperatorError} also when it contains no waitlist.
 */
export function postgresSource(url: string): Promise<Source> {
  return connected(url, async ({ name, client, query, close }) => {
    const [there] = await query("select to_regclass('waitlist_schema') is not null as there")
    if (!there?.there) {
      throw new OperatorError(`There is no waitlist in ${name}: DATABASE_URL names the database to move from.`)
    }
    await upgrade(client, name)
    await requireSequences(query, name, 'select')
    const begin = async () => {
      await query('begin isolation level repeatable read read only')
      await query(PATIENT)
    }
    await begin()
    const [identity] = await query(IDENTITY)
    const [opened] = await query(STATE, [], LONG)
    const use = using(name, reasonOf)
    return {
      name,
      identity: identity!.identity,
      count: table =>
        use(async () => (await query(`select count(*)::float8 as rows from ${table}`, [], LONG))[0]!.rows),
      read: (table, after, most) => use(() => readRows(client, table, after, most)),
      last: table => use(async () => (await query(lastOf(table)))[0]!.last),
      changed: () =>
        use(async () => {
          await query('commit')
          await begin()
          return (await query(STATE, [], LONG))[0]!.state !== opened!.state
        }),
      close,
    }
  })
}

/** For a transaction that lasts as long as the move. PostgreSQL 17 has a timeout for that, too. */
const PATIENT =
  `set local statement_timeout = ${LONG}; set local idle_in_transaction_session_timeout = ${IDLE};` +
  " select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'"

/** The sequence does not know of numbers that were given by hand. */
const lastOf = (table: Table): string =>
  `select greatest(max(number), pg_sequence_last_value(${sequenceOf(table)}::regclass), 0)::float8 as last from ${table}`

/** A database to move to: one transaction creates its tables, if there are none, and fills them. */
export function postgresTarget(url: string): Promise<Target> {
  return connected(url, async ({ name, client, query, close }) => {
    await requireFit(client, name)
    const [identity] = await query(IDENTITY)
    const use = using(name, reasonOf)
    let begun = false
    let last = forTables(() => 0)
    let firstContact: Row | undefined
    return {
      name,
      identity: identity!.identity,
      begin: () =>
        use(async () => {
          begun = true
          await query('begin isolation level read committed read write')
          await query(`${PATIENT}; set local lock_timeout = ${LOCK_TIMEOUT}`)
          // The server, the database or the role may say that commits need not be on disk.
          if ((await query("select current_setting('synchronous_commit') as commits"))[0]!.commits === 'off') {
            await query('set local synchronous_commit = on')
          }
          await unlessInUse(name, () => query(LOCK_SCHEMA))
          if (!(await isCurrent(client, name))) await upgradeWithin(client, name)
          await requireRights(client, name)
          await requireSequences(query, name, 'update')
          // From here on signups and claims wait; readers see empty tables.
          await unlessInUse(name, () => query(`lock table ${tableNames.join(', ')} in exclusive mode`))
          for (const table of tableNames) {
            if ((await query(`select 1 from ${table} limit 1`)).length > 0) throw notEmpty(name)
          }
        }),
      write: (table, rows) =>
        use(async () => {
          if (table === 'contact') firstContact ??= rows[0]
          const columns = columnsOf(table).map((_, i) => rows.map(row => row[i]))
          await query(statements[table].write, columns)
        }),
      async finish(greatest) {
        last = greatest
      },
      read: (table, after, most) => use(() => readRows(client, table, after, most)),
      commit: () =>
        use(async () => {
          // Sequences do not take part in the transaction. If the commit fails, the empty table will begin with a greater
          // number, which is harmless.
          for (const table of tableNames) {
            if (last[table] > 0) await query(`select setval(${sequenceOf(table)}, $1::bigint)`, [last[table]])
          }
          try {
            await query('commit')
            return true
          } catch (error) {
            const there = await arrived(url, firstContact)
            if (there === false) throw error
            return there === true
          } finally {
            begun = false
          }
        }),
      async close() {
        // At once, so that the next one finds no lock.
        if (begun) await query('rollback', [], LOCK_TIMEOUT).catch(() => {})
        await close()
      },
    }
  })
}

/** Whether a commit whose answer was lost took place; undefined if that cannot be found out. */
async function arrived(url: string, contact: Row | undefined): Promise<boolean | undefined> {
  const until = performance.now() + ASKING
  while (performance.now() < until) {
    const there = await connected(url, async ({ name, client, query, close }) => {
      try {
        await query(`begin; set local lock_timeout = ${LOCK_TIMEOUT}`, [], ASKING)
        // The transaction holds the lock until it has ended, one way or the other.
        await query(LOCK_SCHEMA, [], ASKING)
        if (!(await isCurrent(client, name))) return false
        // Ids are unique, so this row can only come from that commit.
        const text = 'select 1 from contact where number = $1 and id = $2'
        return contact === undefined || (await query(text, contact.slice(0, 2), ASKING)).length > 0
      } finally {
        await query('rollback', [], ASKING).catch(() => {})
        await close()
      }
    }).catch(() => undefined)
    if (there !== undefined) return there
    await wait(500)
  }
  return undefined
}

async function readRows(client: ClientBase, table: Table, after: number, most: number): Promise<readonly Row[]> {
  const { read: text } = statements[table]
  return (await client.query({ text, values: [after, most], rowMode: 'array' })).rows as unknown as Row[]
}

async function unlessInUse(name: string, lock: () => Promise<unknown>): Promise<void> {
  try {
    await lock()
  } catch (error) {
    if ((error as { code?: string }).code !== '55P03') throw error
    throw new OperatorError(
      `${name} is in use: a service writes to it, or another move. Stop every instance, or wait until that move has ended.`,
    )
  }
}

/**
 * A service needs no right to the sequences; a move reads and sets them.
 *
 * @throws {OperatorError} when the role lacks that right.
 */
async function requireSequences(query: Query, name: string, right: 'select' | 'update'): Promise<void> {
  const rows = await query(
    'select current_user as role, sequence from unnest($1::text[]) with ordinality as t (table_name, ord),' +
      " pg_get_serial_sequence(table_name, 'number') as sequence where not has_sequence_privilege(sequence, $2) order by ord",
    [tableNames, right],
  )
  if (rows.length === 0) return
  const sequences = rows.map(({ sequence }) => sequence).join(', ')
  const { role } = rows[0]!
  throw new OperatorError(
    `The role "${role}" lacks rights in ${name}. Its owner gives them with: grant ${right} on sequence ${sequences} to "${role}";`,
  )
}

type Query = (text: string, values?: readonly unknown[], timeout?: number) => Promise<readonly QueryResultRow[]>

interface Connection extends Pick<Awaited<ReturnType<Postgres['borrow']>>, 'client'> {
  /** For messages: without user and password. */
  readonly name: string
  readonly query: Query
  close(): Promise<void>
}

/** One connection, kept until the move ends. */
async function connected<T>(url: string, make: (connection: Connection) => Promise<T>): Promise<T> {
  const name = nameOf(url)
  const database = open(url)
  let release = () => {}
  const close = async () => {
    release()
    await database.close()
  }
  try {
    const borrowed = await database.borrow()
    release = borrowed.release
    const { client } = borrowed
    const query: Query = async (text, values = [], timeout = STATEMENT) => {
      const patient: QueryConfig & { query_timeout: number } = { text, values: [...values], query_timeout: timeout }
      return (await client.query(patient)).rows
    }
    return await make({ name, client, query, close })
  } catch (error) {
    await close()
    throw error instanceof OperatorError ? error : new OperatorError(`${name} cannot be used: ${reasonOf(error)}`)
  }
}

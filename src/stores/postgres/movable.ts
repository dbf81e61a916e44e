import { setTimeout as wait } from 'node:timers/promises'
import type { QueryConfig, QueryResultRow } from 'pg'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { type Extent, type Movable, notEmpty, type Row, readRows, type Source, type Target } from '../operator/move.ts'
import { type Table, tableNames, tables } from '../rows.ts'
import type { Sql } from '../sql.ts'
import type { Borrowed } from './client.ts'
import { cannotUse, nameOf, open, STATEMENT } from './engine.ts'
import { isCurrent, LOCK_SCHEMA, requireFit, upgrade, upgradeWithin } from './schema.ts'
import { within } from './sql.ts'

/** A database that a move begins or ends with. */
export const postgresMovable = (url: string): Movable => ({
  name: nameOf(url),
  file: () => null,
  openSource: () => connected(url, sourceOn),
  openTarget: () => connected(url, connection => targetOn(connection, url)),
  cannotUse: error => cannotUse(url, error),
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
async function sourceOn({ name, client, query, close }: Connection): Promise<Source> {
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
  const sql = within(query as Sql['all'])
  return {
    name,
    identity: identity!.identity,
    read: (...which) => readRows(sql, ...which),
    close,
    extent: async table => (await query(extentOf(table), [], LONG))[0] as Extent,
    async changed() {
      await query('commit')
      await begin()
      return (await query(STATE, [], LONG))[0]!.state !== opened!.state
    },
  }
}

/** For a transaction that lasts as long as the move. PostgreSQL 17 has a timeout for that, too. */
const PATIENT =
  `set local statement_timeout = ${LONG}; set local idle_in_transaction_session_timeout = ${IDLE};` +
  " select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'"

/** The sequence does not know of numbers that were given by hand. */
const extentOf = (table: Table): string =>
  `select count(*) as rows, greatest(max(number), pg_sequence_last_value(${sequenceOf(table)}::regclass), 0) as last from ${table}`

/** A database to move to: one transaction creates its tables, if there are none, and fills them. */
async function targetOn({ name, client, query, close }: Connection, url: string): Promise<Target> {
  await requireFit(client, name)
  const [identity] = await query(IDENTITY)
  const sql = within(query as Sql['all'])
  let begun = false
  let last: Readonly<Record<Table, number>> | undefined
  /** A contact that is only there if the commit took place. */
  let first: Row | undefined
  return {
    name,
    identity: identity!.identity,
    read: (...which) => readRows(sql, ...which),
    write(table, rows) {
      if (table === 'contact') first ??= rows[0]
      return sql.insert(table, tables[table], rows)
    },
    async begin() {
      begun = true
      await query('begin isolation level read committed read write')
      await query(`${PATIENT}; set local lock_timeout = ${LOCK_TIMEOUT}`)
      // The server, the database or the role may say that commits need not be on disk.
      if ((await query("select current_setting('synchronous_commit') as commits"))[0]!.commits === 'off') {
        await query('set local synchronous_commit = on')
      }
      await unlessInUse(name, () => query(LOCK_SCHEMA))
      if (!(await isCurrent(client, name))) await upgradeWithin(client, name)
      await requireSequences(query, name, 'update')
      // From here on signups and claims wait; readers see empty tables.
      await unlessInUse(name, () => query(`lock table ${tableNames.join(', ')} in exclusive mode`))
      for (const table of tableNames) {
        if ((await query(`select 1 from ${table} limit 1`)).length > 0) throw notEmpty(name)
      }
    },
    async finish(greatest) {
      last = greatest
    },
    async commit() {
      // Sequences do not take part in the transaction. If the commit fails, the empty table will begin with a greater
      // number, which is harmless.
      for (const table of tableNames) {
        if (last![table] > 0) await query(`select setval(${sequenceOf(table)}, $1::bigint)`, [last![table]])
      }
      try {
        await query('commit')
        return true
      } catch (error) {
        const there = await arrived(url, first)
        if (there === false) throw error
        return there === true
      } finally {
        begun = false
      }
    },
    async close() {
      // At once, so that the next one finds no lock.
      if (begun) await query('rollback', [], LOCK_TIMEOUT).catch(() => {})
      await close()
    },
  }
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
        return contact === undefined || (await query(text, [contact.number, contact.id], ASKING)).length > 0
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

interface Connection extends Pick<Borrowed, 'client'> {
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
    throw cannotUse(url, error)
  }
}

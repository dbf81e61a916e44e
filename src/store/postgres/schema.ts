import type { ClientBase, QueryConfig } from 'pg'
import { type Log, OperatorError } from '../../config/operator.ts'
import { postgresSchema, requireKnownSchema, SCHEMA_VERSION } from '../migrate.ts'
import { passes } from './errors.ts'

/** A number that no other program uses for its locks: "waitlist" in ASCII. */
const LOCK = '8602272712010330996'
/** Milliseconds. Other instances wait for the first, which makes the tables. */
const LONG = 600_000
/** Identity columns came with 10; since 11, adding a column with a default does not rewrite the table. */
const OLDEST = 11

/**
 * Makes the tables if there are none. Of any number of instances that start at once, one does it and the others wait. If there
 * is nothing to do, nothing is locked, and the role needs no right to create anything.
 *
 * @throws {OperatorError} when the server cannot keep the store, the schema is newer than this program, or cannot be made.
 */
export async function prepareSchema(client: ClientBase, name: string, log: Pick<Log, 'warn'>): Promise<void> {
  await requireFit(client, name, log)
  if ((await versionOf(client, name)) === SCHEMA_VERSION) return
  await client.query(
    'begin isolation level read committed; set local statement_timeout = 0; set local lock_timeout = 0',
  )
  const long = (text: string) => client.query({ text, query_timeout: LONG } as QueryConfig)
  await long(`select pg_advisory_xact_lock(${LOCK})`)
  try {
    if ((await versionOf(client, name)) === 0) {
      await long(`create table waitlist_schema (version integer not null); ${postgresSchema()}`)
      await client.query(`insert into waitlist_schema (version) values (${SCHEMA_VERSION})`)
    }
  } catch (error) {
    if (passes(error)) throw error
    throw new OperatorError(`The tables of ${name} cannot be made: ${(error as Error).message}`)
  }
  await client.query('commit')
}

/** @throws {OperatorError} when there are no tables, or they are newer than this program. */
export async function requireSchema(client: ClientBase, name: string): Promise<void> {
  if ((await versionOf(client, name)) > 0) return
  throw new OperatorError(`${name} has no waitlist. Start the service once, which makes its tables.`)
}

/**
 * 0: there are no tables. `to_regclass` would remember that there were none while it waited for the instance that makes them.
 */
async function versionOf(client: ClientBase, name: string): Promise<number> {
  const { rowCount } = await client.query(
    "select from pg_class where relname = 'waitlist_schema' and pg_table_is_visible(oid)",
  )
  if (rowCount === 0) return 0
  const { rows: versions } = await client.query('select version from waitlist_schema')
  requireKnownSchema(versions[0].version, name)
  return versions[0].version
}

/** @throws {OperatorError} when the store cannot be kept on this server. */
async function requireFit(client: ClientBase, name: string, log: Pick<Log, 'warn'>): Promise<void> {
  const { rows } = await client.query(
    "select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding," +
      " current_setting('transaction_read_only') = 'on' as read_only, current_setting('fsync') = 'on' as fsync",
  )
  const { version, encoding, read_only, fsync } = rows[0]
  if (version < OLDEST * 10_000)
    throw new OperatorError(`${name} cannot be used: PostgreSQL ${OLDEST} or newer is needed.`)
  if (encoding !== 'UTF8') throw new OperatorError(`${name} cannot be used: its encoding is ${encoding}, not UTF8.`)
  // A failed-over primary is read-only too, which is temporary.
  if (read_only) throw Object.assign(new Error('it is read-only: a standby, or set to be'), { code: '25006' })
  if (!fsync) log.warn({ database: name }, 'fsync is off in PostgreSQL: a power cut can lose acknowledged signups')
}

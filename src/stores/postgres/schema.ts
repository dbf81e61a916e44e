import type pg from 'pg'
import { type Log, OperatorError } from '../../waitlist/ports/log.ts'
import { pendingMigrations, readMigrations } from '../migrate.ts'
import { passes } from './errors.ts'

const released = new URL('./migrations/', import.meta.url)

/** A number that no other program uses for its locks: "waitlist" in ASCII. */
const LOCK = '8602272712010330996'
/** Milliseconds. An index on a large table takes long, and other instances wait for the first. */
const LONG = 600_000
/** Milliseconds that a change of a table may wait for its users. Signups wait behind it. */
const LOCK_TIMEOUT = 2_000

/**
 * Creates or upgrades the schema. Of any number of instances that start at once, one does it and the others wait. If there
 * is nothing to do, nothing is locked, and the role needs no right to create anything.
 *
 * The previous release must keep working after a migration, since its instances run on during a rolling upgrade: add
 * tables, columns that may be null or have a constant default, and indexes; rename nothing, change no type, and remove
 * nothing before the release after the next. Signups must not wait for a migration either: it runs in one transaction, so
 * it must not build an index on a table that may be large, as long as there is no support for `concurrently`.
 *
 * @returns the facts about the server, which is checked first.
 * @throws {OperatorError} when the schema is newer than this program, or cannot be made.
 */
export async function upgrade(client: pg.ClientBase, database: string, migrations = released): Promise<Facts> {
  const facts = await requireFit(client, database)
  if (await isCurrent(client, database, migrations)) return facts
  // After waiting for the lock, it must see what the instance before it did.
  await client.query('begin isolation level read committed')
  await client.query('set local statement_timeout = 0; set local lock_timeout = 0')
  await long(client, LOCK_SCHEMA)
  await upgradeWithin(client, database, migrations)
  await client.query('commit')
  return facts
}

/** Only one at a time may make the tables. The lock ends with the transaction, even behind PgBouncer. */
export const LOCK_SCHEMA = `select pg_advisory_xact_lock(${LOCK})`

/** Makes or upgrades the tables in the caller's transaction, which holds the lock. */
export async function upgradeWithin(client: pg.ClientBase, database: string, migrations = released): Promise<void> {
  try {
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT}`)
    await client.query('create table if not exists waitlist_schema (version integer not null)')
    const known = readMigrations(migrations)
    for (const { sql } of pendingMigrations(known, await version(client), database)) await long(client, sql)
    await client.query('delete from waitlist_schema')
    await client.query(`insert into waitlist_schema (version) values (${known.length})`)
  } catch (error) {
    if (error instanceof OperatorError || passes(error)) throw error
    throw new OperatorError(`The schema of ${database} cannot be made: ${(error as Error).message}`)
  }
}

const long = (client: pg.ClientBase, text: string) => client.query({ text, query_timeout: LONG } as pg.QueryConfig)

/** @throws {OperatorError} when the schema is newer than this program. False: it has to be made or upgraded. */
export const isCurrent = async (client: pg.ClientBase, database: string, migrations = released): Promise<boolean> =>
  pendingMigrations(readMigrations(migrations), await version(client), database).length === 0

async function version(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query("select to_regclass('waitlist_schema') is not null as made")
  if (!rows[0].made) return 0
  const { rows: versions } = await client.query('select version from waitlist_schema')
  return versions[0]?.version ?? 0
}

/** The facts about a server, a database and a role that the store depends on. */
export interface Facts {
  /** 150004 for 15.4. */
  readonly version: number
  readonly encoding: string
  readonly dates: string
  readonly readOnly: boolean
  readonly fsync: boolean
}

/** Identity columns came with 10; since 11, adding a column with a default does not rewrite the table. */
const OLDEST = 11

const FACTS = `
select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
  current_setting('DateStyle') as dates, current_setting('transaction_read_only')::boolean as "readOnly",
  current_setting('fsync')::boolean as fsync`

/** Why the store cannot be kept there; null if it can. */
export function unfit({ version, encoding, dates, readOnly }: Facts): string | null {
  if (version < OLDEST * 10_000) {
    return `PostgreSQL ${OLDEST} or newer is needed; this one is ${Math.trunc(version / 10_000)}`
  }
  if (encoding !== 'UTF8')
    return `its encoding is ${encoding}; create one with encoding 'UTF8' (and template template0)`
  if (!dates.startsWith('ISO')) return `DateStyle is ${dates} for this role or database; it must be ISO`
  // A failed-over primary is read-only too, which is temporary.
  if (readOnly) throw Object.assign(new Error('it is read-only: a standby, or set to be'), { code: '25006' })
  return null
}

/** @throws {OperatorError} when the store cannot be kept on this server. */
export async function requireFit(client: pg.ClientBase, database: string): Promise<Facts> {
  const { rows } = await client.query(FACTS)
  const facts = rows[0] as Facts
  const why = unfit(facts)
  if (why !== null) throw new OperatorError(`${database} cannot be used: ${why}.`)
  return facts
}

/** Warns of what no statement of ours can fix. */
export function warnOf({ fsync }: Facts, log: Log, database: string): void {
  if (!fsync) log.warn({ database }, 'fsync is off in PostgreSQL: a power cut can lose acknowledged signups')
}

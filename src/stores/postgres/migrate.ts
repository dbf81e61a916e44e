import type pg from 'pg'
import { CannotOpen } from '../../waitlist/ports.ts'
import { pendingMigrations, readMigrations } from '../migrate.ts'
import { passes } from './errors.ts'
import { type Facts, requireFit } from './server.ts'

const released = new URL('../migrations/postgres/', import.meta.url)

/** Any number that no other program takes for its own locks: "waitlist" in ASCII. */
const LOCK = '8602272712010330996'
/** Milliseconds. An index on a large table takes its time, and whoever comes second waits for the first. */
const LONG = 600_000
/** Milliseconds that a change of a table may wait for those who use it; signups wait behind it. */
const LOCK_TIMEOUT = 2_000

/**
 * Creates or upgrades the schema. Any number of instances may do so at once; one does it, the others wait for it. When
 * nothing is to be done nothing is locked, and the role needs no right to create anything.
 *
 * A migration must leave the program of the release before it working, since its instances run on during a rolling
 * upgrade: add tables, columns that may be null or have a constant default, and indexes; rename nothing, change no type, and
 * take nothing away before the release after the next. It must not keep signups waiting either: it runs in one transaction, so an
 * index on a table that may be large does not belong in it as long as this runs none of them `concurrently`.
 *
 * @returns what the server is like, which is looked at first.
 * @throws {CannotOpen} when the schema is newer than this program, or cannot be made.
 */
export async function upgrade(client: pg.ClientBase, database: string, migrations = released): Promise<Facts> {
  const facts = await requireFit(client, database)
  const known = readMigrations(migrations)
  if (pendingMigrations(known, await version(client), database).length === 0) return facts
  const run = (text: string) => client.query({ text, query_timeout: LONG } as pg.QueryConfig)
  try {
    // Whoever waits for the lock must see what the one before has done.
    await run('begin isolation level read committed')
    await run('set local statement_timeout = 0; set local lock_timeout = 0')
    // With the transaction it ends, also where PgBouncer gives the connection to others then.
    await run(`select pg_advisory_xact_lock(${LOCK})`)
    await run(`set local lock_timeout = ${LOCK_TIMEOUT}`)
    await run('create table if not exists waitlist_schema (version integer not null)')
    for (const { sql } of pendingMigrations(known, await version(client), database)) await run(sql)
    await run('delete from waitlist_schema')
    await run(`insert into waitlist_schema (version) values (${known.length})`)
    await run('commit')
    return facts
  } catch (error) {
    if (error instanceof CannotOpen || passes(error)) throw error
    throw new CannotOpen(`The schema of ${database} cannot be made: ${(error as Error).message}`)
  }
}

/** @throws {CannotOpen} when the schema is newer than this program. False: it has to be made or upgraded. */
export const isCurrent = async (client: pg.ClientBase, database: string): Promise<boolean> =>
  pendingMigrations(readMigrations(released), await version(client), database).length === 0

async function version(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query("select to_regclass('waitlist_schema') is not null as there")
  if (!rows[0].there) return 0
  const { rows: versions } = await client.query('select version from waitlist_schema')
  return versions[0]?.version ?? 0
}

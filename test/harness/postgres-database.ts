import type { TestContext } from 'node:test'
import pg from 'pg'
import type { StoredContact } from '../store/place.ts'
import { type RunSql, STORED_CONTACTS } from './database.ts'
import { until } from './program.ts'

/** Lends a connection of its own to a database. */
export async function withPostgresDatabase<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  // Where the server ends before its time, the statement is told.
  client.on('error', () => {})
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Somebody else's session, for as long as the test takes. */
export async function session(t: Pick<TestContext, 'after'>, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end().catch(() => {}))
  return client
}

/** Steps over every lease and every wait, so that a test need not: all that is left to do is due. */
export const endLeasesAt = (url: string): Promise<unknown> =>
  // In the order in which instances settle them.
  rowsIn(
    url,
    "update delivery set due_at = 0 where number in (select number from delivery where state = 'waiting'" +
      ' order by number for update)',
  )

/** Waits until nothing is left to do. */
export function completedAt(url: string): Promise<void> {
  const left =
    "select 1 from contact where state = 'pending' union all select 1 from delivery where state <> 'delivered' limit 1"
  return withPostgresDatabase(url, client => until(async () => (await client.query(left)).rows.length === 0))
}

/** Reads a database beside whoever writes it, by a connection of its own. */
export const contactsIn = (url: string): Promise<StoredContact[]> => rowsIn(url, STORED_CONTACTS)

export const rowsIn = <Row>(url: string, text: string, values: readonly unknown[] = []): Promise<Row[]> =>
  withPostgresDatabase(url, async client => (await client.query(text, [...values])).rows)

/** Runs statements as the owner does in a shell. */
export const sqlOn =
  (url: string): RunSql =>
  statement =>
    withPostgresDatabase(url, async client => (await client.query(statement)).rows)

/** A role with no other rights than the service needs once the tables are there. */
export const ROLE = 'waitlist_service'
export const PASSWORD = "p@ss:w/o?rd#%'&"

/** Another file may have made it on the same server. */
export const makeRole = `do $do$ begin create role ${ROLE} login password '${PASSWORD.replaceAll("'", "''")}';
  exception when duplicate_object or unique_violation then null; end $do$`

/** Identity columns need no right to their sequences. */
export const grants = (role: string): readonly string[] => [
  `grant usage on schema public to ${role}`,
  `grant select on waitlist_schema to ${role}`,
  `grant select, insert, update, delete on contact, delivery, channel, job_lock, erased, proof, secret, attempt to ${role}`,
]

/** The same database, as this role. */
export function roleUrl(url: string, password = PASSWORD): string {
  const as = new URL(url)
  as.username = ROLE
  as.password = encodeURIComponent(password)
  return as.href
}

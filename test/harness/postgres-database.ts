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

const DEADLOCK = '40P01'

/** Steps over every lease and every wait, so that a test need not: all that is left to do is due. */
export function endLeasesAt(url: string): Promise<void> {
  return withPostgresDatabase(url, async client => {
    let met: boolean
    do {
      met = false
      await client.query("update delivery set due_at = 0 where state = 'waiting'").catch(error => {
        // Instances settle the same rows in another order.
        if (error.code !== DEADLOCK) throw error
        met = true
      })
    } while (met)
  })
}

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

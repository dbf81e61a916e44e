import type { RunSql, StoredContact } from '../contracts/store.place.ts'
import { withPostgresDatabase } from './postgres-database.ts'

/** Reads a database beside whoever writes it, by a connection of its own. */
export async function contactsIn(url: string): Promise<StoredContact[]> {
  return rowsIn(
    url,
    'select id, name, email, state, provider_id as "providerId", (event_at is not null)::int as events,' +
      ' (select count(*)::int from delivery where contact = contact.number) as deliveries from contact order by number',
  )
}

export const rowsIn = <Row>(url: string, text: string, values: readonly unknown[] = []): Promise<Row[]> =>
  withPostgresDatabase(url, async client => (await client.query(text, [...values])).rows)

/** Runs statements as the owner does in a shell. */
export const sqlOn =
  (url: string): RunSql =>
  (statement, how) =>
    withPostgresDatabase(url, async client => {
      if (how === 'unchecked') await client.query('set session_replication_role = replica')
      return (await client.query(statement)).rows
    })

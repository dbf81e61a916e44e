import pg from 'pg'
import type { StoredContact } from '../contracts/store.place.ts'

/** Reads a database beside whoever writes it, by a connection of its own. */
export async function contactsIn(url: string): Promise<StoredContact[]> {
  return rowsIn(
    url,
    'select id, name, email, state, provider_id as "providerId",' +
      ' (select count(*)::int from event where contact = number) as events,' +
      ' (select count(*)::int from delivery where contact = contact.number) as deliveries from contact order by number',
  )
}

export async function rowsIn<Row>(url: string, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text, [...values])).rows
  } finally {
    await client.end()
  }
}

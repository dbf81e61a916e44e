import { DatabaseSync } from 'node:sqlite'
import type { StoredContact } from '../contracts/store.ts'

/** Reads a database file beside whoever writes it, by a connection of its own. */
export function contactsIn(path: string): StoredContact[] {
  return withDatabase(path, database => {
    const events = database.prepare('select count(*) as n from event').get() as { n: number }
    const rows = database
      .prepare(
        'select id, contact.name, email, state, count(event.contact) as events from contact' +
          ' left join event on event.contact = contact.number group by contact.number order by contact.number',
      )
      .all() as unknown as StoredContact[]
    const counted = rows.reduce((sum, row) => sum + row.events, 0)
    if (counted !== events.n) throw new Error(`${events.n} events, but ${counted} belong to a contact`)
    return rows
  })
}

/** Lends a connection of its own to a database file. */
export function withDatabase<T>(path: string, use: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path, { timeout: 5000 })
  try {
    return use(database)
  } finally {
    database.close()
  }
}

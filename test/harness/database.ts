import { DatabaseSync } from 'node:sqlite'
import type { StoredContact } from '../contracts/store.place.ts'

/** Reads a database file beside whoever writes it, by a connection of its own. */
export function contactsIn(path: string): StoredContact[] {
  return withDatabase(path, database => {
    // All of it as it stood at one moment: somebody writes beside us.
    database.exec('begin')
    const count = (table: string) => (database.prepare(`select count(*) as n from ${table}`).get() as { n: number }).n
    const rows = database
      .prepare(
        'select id, name, email, state, provider_id as providerId,' +
          ' (select count(*) from event where contact = contact.number) as events,' +
          ' (select count(*) from delivery where contact = contact.number) as deliveries from contact order by number',
      )
      .all() as unknown as StoredContact[]
    for (const what of ['events', 'deliveries'] as const) {
      const [all, counted] = [
        count(what === 'events' ? 'event' : 'delivery'),
        rows.reduce((sum, row) => sum + row[what], 0),
      ]
      if (counted !== all) throw new Error(`${all} ${what}, but ${counted} belong to a contact`)
    }
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

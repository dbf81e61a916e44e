import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Contact, ContactState } from '../waitlist/contact.ts'
import { CannotOpen } from '../waitlist/ports.ts'

interface Row {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: ContactState
  readonly created_at: number
}

/**
 * Reads all contacts of a database file, one after the other, as they stood at one moment. Opens the file for reading
 * only; a service that uses it goes on.
 *
 * @throws {CannotOpen} when there is no such file.
 */
export function* readContacts(path: string): Generator<Contact> {
  if (!existsSync(path))
    throw new CannotOpen(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
  try {
    const rows = database.prepare('select id, name, email, state, created_at from contact order by number').iterate()
    for (const row of rows as Iterable<unknown>) {
      const { created_at, ...contact } = row as Row
      yield { ...contact, createdAt: new Date(created_at) }
    }
  } finally {
    database.close()
  }
}

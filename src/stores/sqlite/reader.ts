import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Contact, ContactState } from '../../waitlist/contact.ts'
import { CannotOpen } from '../../waitlist/ports.ts'
import { requireMoved } from './file.ts'

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
 * @throws {CannotOpen} at once, when there is no such file or it is none of ours.
 */
export function readContacts(path: string): Generator<Contact> {
  const database = openForReading(path)
  try {
    return contactsIn(database)
  } catch (error) {
    database.close()
    throw new CannotOpen(`${path} cannot be read: ${(error as Error).message}`)
  }
}

/** @throws {CannotOpen} when there is no such file. */
export function openForReading(path: string): DatabaseSync {
  if (!existsSync(path)) {
    throw new CannotOpen(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
  }
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
    requireMoved(database, path)
    return database
  } catch (error) {
    database?.close()
    if (error instanceof CannotOpen) throw error
    throw new CannotOpen(`${path} cannot be read: ${(error as Error).message}`)
  }
}

function contactsIn(database: DatabaseSync): Generator<Contact> {
  const query = database.prepare('select id, name, email, state, created_at from contact order by number')
  return (function* () {
    try {
      for (const row of query.iterate() as Iterable<unknown>) {
        const { created_at, ...contact } = row as Row
        yield { ...contact, createdAt: new Date(created_at) }
      }
    } finally {
      database.close()
    }
  })()
}

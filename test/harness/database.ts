import { DatabaseSync } from 'node:sqlite'
import type { StoredContact } from '../store/place.ts'

export type RunSql = (statement: string) => Promise<readonly Record<string, unknown>[]>

/** Every contact as `StoredContact`, for both engines. */
export const STORED_CONTACTS =
  'select id, name, email, state, provider_id as "providerId", case when event_at is null then 0 else 1 end as events,' +
  ' cast((select count(*) from delivery where contact = contact.number) as int) as deliveries from contact order by number'

/** Reads a database file beside whoever writes it, by a connection of its own. */
export function contactsIn(path: string): StoredContact[] {
  return withDatabase(path, database => {
    // All of it as it stood at one moment: somebody writes beside us.
    database.exec('begin')
    const rows = database.prepare(STORED_CONTACTS).all() as unknown as StoredContact[]
    const { n: all } = database.prepare('select count(*) as n from delivery').get() as { n: number }
    const counted = rows.reduce((sum, { deliveries }) => sum + deliveries, 0)
    if (counted !== all) throw new Error(`${all} deliveries, but ${counted} belong to a contact`)
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

/** Runs statements as an operator does in a shell. */
export const sqlOn =
  (path: string): RunSql =>
  async statement =>
    withDatabase(path, database => database.prepare(statement).all() as Record<string, unknown>[])

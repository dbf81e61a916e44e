import { openSqliteFile } from '../src/stores/sqlite/file.ts'

/** Contacts in one statement. */
const CHUNK = 100_000

/**
 * Fills a file of the product's own schema with contacts, as quickly as SQLite can: nothing is synced. The addresses are
 * random, as the load's are, so the index on them is as scattered as that of a real list. Ends early after `patience`
 * seconds; returns how many contacts there are.
 */
export function fill(path: string, contacts: number, patience: number): number {
  const { database, close } = openSqliteFile({ path })
  const until = performance.now() + patience * 1000
  let filled = 0
  try {
    database.exec('pragma synchronous = off; pragma cache_size = -2000000; pragma wal_autocheckpoint = 100000')
    const insertContacts = database.prepare(
      `with recursive row (n) as (select ? union all select n + 1 from row where n < ?),
         made (n, email) as materialized (select n, lower(hex(randomblob(8))) || '@example.com' from row)
       insert into contact (number, id, name, email, email_key, state, created_at)
       select n, printf('01900000-%04x-7%03x-8000-%012x', n >> 16, n & 4095, n), 'Ada Lovelace', email, email,
         'listed', 1760000000000 + n from made`,
    )
    const insertEvents = database.prepare(
      `insert into event (contact, name, created_at)
       select number, 'waitlist.joined', created_at from contact where number between ? and ?`,
    )
    while (filled < contacts && performance.now() < until) {
      const last = Math.min(filled + CHUNK, contacts)
      database.exec('begin')
      insertContacts.run(filled + 1, last)
      insertEvents.run(filled + 1, last)
      database.exec('commit')
      filled = last
    }
    database.exec('pragma wal_checkpoint(truncate)')
  } finally {
    close()
  }
  return filled
}

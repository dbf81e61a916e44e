import { randomUUIDv7 } from 'node:crypto'
import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../../waitlist/ports/log.ts'
import { mailboxOf } from '../../../waitlist/rules/mailbox.ts'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import { IN_PLACE } from '../../deliveries.ts'
import { erasureHash } from '../../erasure.ts'
import {
  type Decide,
  type Entry,
  type Fate,
  type Imports,
  type ImportWish,
  importing,
  type Pace,
  staysErased,
  stored,
} from '../../operator/imports.ts'
import { freeFor, MINIMUM_FREE } from '../disk.ts'
import { openSqliteFile } from '../schema.ts'
import { erasureSecret } from './erasure.ts'
import { cannotUse, lend, openForReading, openForWriting } from './open.ts'

export const imports = (path: string): Imports => ({
  importContacts: async (entries, wish) =>
    lend(path, open(path, wish), database => {
      const look = looking(database)
      const decide: Decide = wish.dryRun ? batch => batch.map(look()) : adding(database, path, wish, look)
      return importing(entries, wish, decide, PACE)
    }),
})

/** A file that is not there or empty is made first, as at a first start; for a dry run, in memory. */
function open(path: string, { dryRun, made }: ImportWish): DatabaseSync {
  const isThere = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
  if (isThere) return (dryRun ? openForReading : openForWriting)(path)
  try {
    const file = openSqliteFile({ path: dryRun ? ':memory:' : path })
    made(path)
    if (dryRun) return file.database
    file.close()
  } catch (error) {
    throw error instanceof OperatorError ? error : cannotUse(path, error)
  }
  return openForWriting(path)
}

/** The service waits for each step, since a file has one writer at a time. */
const PACE: Pace = { least: 500, most: 500, rests: 0.15 }

function adding(
  database: DatabaseSync,
  path: string,
  { announcement, keepsMailboxes }: ImportWish,
  look: ReturnType<typeof looking>,
): Decide {
  // KiB, as for the service: each address lands somewhere in the index, whose inner pages should stay.
  database.exec('pragma cache_size = -16384')
  const insert = database.prepare(
    'insert into contact (id, name, email, email_key, state, held_for, created_at, source, event_name, event_at, mailbox)' +
      ' values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const deliver = database.prepare(`insert into delivery (contact, destination, due_at) values (?, ?, ?) ${IN_PLACE}`)

  function add({ signup: { name, email }, id, createdAt, source, ...entry }: Entry, now: number): void {
    const { state, eventName, destinations } = stored(entry, announcement)
    const { lastInsertRowid } = insert.run(
      id ?? randomUUIDv7(),
      name,
      email,
      emailKey(email),
      state,
      entry.heldFor ?? null,
      createdAt?.getTime() ?? now,
      source === undefined ? null : JSON.stringify(source),
      eventName,
      eventName && now,
      keepsMailboxes ? mailboxOf(emailKey(email)) : null,
    )
    for (const destination of destinations) deliver.run(lastInsertRowid, destination, now)
  }

  return batch => {
    // The room that is left is for those who sign up.
    if (freeFor(path) < MINIMUM_FREE)
      throw new Error('less than 64 MiB are free. Make room, and run the same command again')
    database.exec('begin immediate')
    const now = Date.now()
    const fateOf = look()
    const fates = batch.map(entry => {
      const fate = fateOf(entry)
      if (fate === 'added') add(entry, now)
      return fate
    })
    database.exec('commit')
    return fates
  }
}

/** Prepares the statements. The result is to be called for each batch, since the first removal makes the secret. */
function looking(database: DatabaseSync): () => (entry: Entry) => Fate {
  const listed = database.prepare('select 1 from contact where email_key = ?')
  const erased = database.prepare('select erased_at from erased where hash = ?')
  return () => {
    const secret = erasureSecret(database)
    return entry => {
      const { email } = entry.signup
      if (listed.get(emailKey(email)) !== undefined) return 'existing'
      const row = secret && (erased.get(erasureHash(secret, email)) as { erased_at: number } | undefined)
      return row && staysErased(entry, new Date(row.erased_at)) ? 'erased' : 'added'
    }
  }
}

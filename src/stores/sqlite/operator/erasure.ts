import type { DatabaseSync } from 'node:sqlite'
import type { ContactState } from '../../../waitlist/rules/contact.ts'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import { FARTHEST_LEASE } from '../../deliveries.ts'
import { ERASURE, erasureHash } from '../../erasure.ts'
import { type Erasure, TRACE_COLUMNS, type TraceRow, type Traces, tracesOf } from '../../operator/erasure.ts'
import { newSecret } from '../../secret.ts'
import { lend, openForReading, openForWriting } from './open.ts'

export const erasure = (path: string): Erasure => ({
  traces: async email => lend(path, openForReading(path), database => find(database, email, Date.now())?.traces),
  erase: async email => lend(path, openForWriting(path), database => erase(database, email, Date.now())),
})

/** Undefined: there was no removal yet. */
export const erasureSecret = (database: DatabaseSync): string | undefined => secretOf(database, ERASURE)

export const secretOf = (database: DatabaseSync, name: string): string | undefined =>
  database.prepare('select value from secret where name = ?').get(name)?.value as string | undefined

interface Found {
  readonly number: number
  readonly traces: Traces
}

function find(database: DatabaseSync, email: string, now: number): Found | undefined {
  const contact = database
    .prepare('select number, state, created_at from contact where email_key = ?')
    .get(emailKey(email)) as { number: number; state: ContactState; created_at: number } | undefined
  if (contact === undefined) return undefined
  const { number, state, created_at } = contact
  const leased = `token is not null and due_at > ? and due_at <= ? + ${FARTHEST_LEASE} as leased`
  const rows = database
    .prepare(`select ${TRACE_COLUMNS}, ${leased} from delivery where contact = ? order by number`)
    .all(now, now, number) as unknown as TraceRow[]
  return { number, traces: tracesOf({ state, createdAt: new Date(created_at) }, rows) }
}

function erase(database: DatabaseSync, email: string, now: number): Traces | undefined {
  // What is deleted is overwritten, and not only left out.
  database.exec('pragma secure_delete = on; begin immediate')
  const found = find(database, email, now)
  if (found !== undefined) {
    const { number, traces } = found
    database.prepare('delete from contact where number = ?').run(number)
    database.prepare('insert into secret (name, value) values (?, ?) on conflict do nothing').run(ERASURE, newSecret())
    // Not before the signup, even if the clock was set back since.
    database
      .prepare(
        'insert into erased (hash, erased_at) values (?, ?)' +
          ' on conflict (hash) do update set erased_at = max(erased_at, excluded.erased_at)',
      )
      .run(erasureHash(erasureSecret(database)!, email), Math.max(now, traces.createdAt.getTime()))
  }
  database.exec('commit')
  if (found !== undefined) emptyLog(database)
  return found?.traces
}

/**
 * Takes the erased rows out of the log too. While somebody reads, or the disk is full, they stay there until it is begun
 * anew. The first checkpoint goes on beside signups, so that they wait for the short rest only.
 */
function emptyLog(database: DatabaseSync): void {
  database.exec('pragma busy_timeout = 500')
  for (const how of ['passive', 'truncate']) {
    try {
      database.exec(`pragma wal_checkpoint(${how})`)
    } catch {
      return
    }
  }
}

import type { Contact, ContactState } from '../../waitlist/contact.ts'
import { CannotOpen, type Log } from '../../waitlist/ports.ts'
import { storeName } from '../place.ts'
import { type Postgres, postgres } from './client.ts'
import { reasonOf } from './errors.ts'
import { requireMoved } from './moving.ts'

interface Row {
  readonly number: string
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: ContactState
  readonly created_at: Date
}

/** Rows that are in memory at once. */
const AT_ONCE = 5_000

const silent: Log = { info() {}, warn() {}, error() {} }

/** Milliseconds for one statement: nobody waits at a page, and a table may be large. */
const STATEMENT = 60_000

const open = (url: string): Postgres => postgres({ url, connections: 1, timeout: STATEMENT, log: silent })

/** @throws {CannotOpen} when the database cannot be reached or has no schema of ours. */
export async function withPostgres<T>(url: string, use: (database: Postgres) => Promise<T>): Promise<T> {
  const database = open(url)
  try {
    await database.lend(client => requireMoved(client, storeName({ kind: 'postgres', url })))
    return await use(database)
  } catch (error) {
    throw cannotUse(url, error)
  } finally {
    await database.close()
  }
}

/** Where the tables are missing (42P01), the service has never run on this database. */
function cannotUse(url: string, error: unknown): CannotOpen {
  if (error instanceof CannotOpen) return error
  const missing = (error as { code?: string }).code === '42P01'
  const why = missing ? 'it has no waitlist. Start the service once, which makes its tables' : reasonOf(error)
  return new CannotOpen(`${storeName({ kind: 'postgres', url })} cannot be used: ${why}`)
}

/**
 * All contacts in the order in which they were stored, as they stood at one moment. Resolves when they can be read.
 *
 * @throws {CannotOpen} when the database cannot be reached or has no schema of ours.
 */
export async function readPostgresContacts(url: string): Promise<AsyncIterable<Contact>> {
  const pages = readPages(url)
  const first = await pages.next()
  return (async function* () {
    try {
      for (let page = first; page.done !== true; page = await pages.next()) yield* page.value
    } finally {
      await pages.return()
    }
  })()
}

async function* readPages(url: string): AsyncGenerator<readonly Contact[], void> {
  const database = open(url)
  try {
    const { client, release } = await database.borrow()
    try {
      await requireMoved(client, storeName({ kind: 'postgres', url }))
      await client.query('begin isolation level repeatable read read only')
      // Whoever reads the export may take their time.
      await client.query('set local idle_in_transaction_session_timeout = 0')
      for (let last = '0', rows: Row[]; ; last = rows.at(-1)!.number) {
        const text =
          'select number, id, name, email, state, created_at from contact where number > $1 order by number limit $2'
        rows = (await client.query<Row>(text, [last, AT_ONCE])).rows
        yield rows.map(({ number, created_at, ...contact }) => ({ ...contact, createdAt: created_at }))
        if (rows.length < AT_ONCE) break
      }
      await client.query('commit')
    } finally {
      release()
    }
  } catch (error) {
    throw cannotUse(url, error)
  } finally {
    await database.close()
  }
}

import type { Contact, ContactState } from '../../../waitlist/contact.ts'
import type { Contacts } from '../../operator/contacts.ts'
import { isCurrent } from '../schema.ts'
import { cannotUse, nameOf, open } from './open.ts'

export const contacts = (url: string): Contacts => ({
  contacts: () => readContacts(url),
})

/** A snapshot of all contacts, in the order in which they were stored. Resolves when they can be read. */
async function readContacts(url: string): Promise<AsyncIterable<Contact>> {
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

interface Row {
  readonly number: string
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: ContactState
  readonly created_at: Date
}

/** Rows in memory at once. */
const AT_ONCE = 5_000

async function* readPages(url: string): AsyncGenerator<readonly Contact[], void> {
  const database = open(url)
  try {
    const { client, release } = await database.borrow()
    try {
      await isCurrent(client, nameOf(url))
      await client.query('begin isolation level repeatable read read only')
      // The reader of an export may be slow.
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

import type { Contact, ContactState } from '../../../waitlist/contact.ts'
import { OperatorError } from '../../../waitlist/ports.ts'
import type { Contacts } from '../../operator/contacts.ts'
import { openForReading } from './open.ts'

export const contacts = (path: string): Contacts => ({
  contacts: async () => readContacts(path),
})

/** Contacts in memory at once. */
const PAGE = 1_000

/**
 * All contacts that had joined before the call, one after the other, in the order in which they did. Each page is read for
 * itself: one transaction for all of them would keep the service from shortening its log for as long as the reader of an
 * export takes. So a contact is as it was when its page was read, and one that was removed meanwhile is missing.
 */
function readContacts(path: string): Generator<Contact> {
  const database = openForReading(path)
  try {
    const last = database.prepare('select max(number) as number from contact').get()?.number as number | null
    const query = database.prepare(
      'select number, id, name, email, state, created_at from contact where number > ? and number <= ? order by number limit ?',
    )
    return (function* () {
      try {
        for (let from: number | undefined = 0; from !== undefined; ) {
          const page = query.all(from, last, PAGE) as unknown as ListedRow[]
          for (const { number: _, created_at, ...contact } of page) {
            yield { ...contact, createdAt: new Date(created_at) }
          }
          from = page.at(-1)?.number
        }
      } finally {
        database.close()
      }
    })()
  } catch (error) {
    database.close()
    throw new OperatorError(`${path} cannot be read: ${(error as Error).message}`)
  }
}

interface ListedRow extends Omit<Contact, 'createdAt'> {
  readonly number: number
  readonly state: ContactState
  readonly created_at: number
}

import type { Contact } from '../../../waitlist/rules/contact.ts'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import {
  CONTACT_COLUMNS,
  type ContactRow,
  contactOf,
  RECORD_COLUMNS,
  type RecordRow,
  recordOf,
} from '../../deliveries.ts'
import { erasureHash } from '../../erasure.ts'
import { conditionsOf, type Dialect, type Which } from '../../filter.ts'
import type { ContactFilter, Contacts, Person } from '../../operator/contacts.ts'
import type { Postgres, Query } from '../client.ts'
import { erasureSecret } from './erasure.ts'
import { cannotUse, lend, open } from './open.ts'

export const contacts = (url: string): Contacts => ({
  contacts: filter => readContacts(url, filter),
  addedLast: (filter, limit) =>
    lend(url, async database => (await select(database, filter, 'order by contact.number desc', limit)).map(contactOf)),
  count: filter => lend(url, database => count(database, filter)),
  person: email => lend(url, ({ attempt }) => attempt(query => readPerson(query, email))),
})

export const dialect: Dialect = {
  parameter: number => `$${number}`,
  time: time => time,
  contains: (text, part) => `strpos(${text}, ${part}) > 0`,
  domain: column => `substr(${column}, strpos(${column}, '@') + 1)`,
  among: (column, parameter) => `${column} = any(array(select json_array_elements_text(${parameter}::json)))`,
}

/** Contacts in memory at once. */
const PAGE = 5_000

/** Nothing is open until somebody reads. */
async function readContacts(url: string, filter: ContactFilter = {}): Promise<AsyncIterable<Contact>> {
  const last = 'select coalesce(max(number), 0) as number from contact'
  const [row] = await lend(url, ({ run }) => run<{ number: string }>(last))
  return readPages(url, { ...filter, upTo: row!.number })
}

/** One transaction for all pages would keep the server from removing what is dead for as long as the reader takes. */
async function* readPages(url: string, which: Which): AsyncGenerator<Contact> {
  const database = open(url)
  try {
    for (let above: string | undefined, rows: readonly Row[]; ; above = rows.at(-1)!.number) {
      rows = await select(database, { ...which, above }, 'order by contact.number', PAGE)
      yield* rows.map(contactOf)
      if (rows.length < PAGE) break
    }
  } catch (error) {
    throw cannotUse(url, error)
  } finally {
    await database.close()
  }
}

interface Row extends ContactRow {
  readonly number: string
}

function select(database: Postgres, which: Which, order: string, limit: number): Promise<readonly Row[]> {
  const { where, values } = conditionsOf(which, dialect)
  const text = `select contact.number, ${CONTACT_COLUMNS} from contact ${where} ${order} limit ${limit}`
  return database.run<Row>(text, values)
}

async function count(database: Postgres, filter: ContactFilter): Promise<number> {
  const { where, values } = conditionsOf(filter, dialect)
  const [row] = await database.run<{ n: number }>(`select count(*)::int as n from contact ${where}`, values)
  return row!.n
}

async function readPerson(query: Query, email: string): Promise<Person> {
  await query('begin isolation level repeatable read read only')
  const key = emailKey(email)
  const [contact] = await query<ContactRow>(`select ${CONTACT_COLUMNS} from contact where email_key = $1`, [key])
  const deliveries = await query<RecordRow>(
    `select id, event_name, ${RECORD_COLUMNS} from contact join delivery on delivery.contact = contact.number` +
      ' where email_key = $1 order by delivery.number',
    [key],
  )
  const secret = await erasureSecret(query)
  const hash = secret === undefined ? '' : erasureHash(secret, email)
  const [erased] = await query<{ erased_at: Date }>('select erased_at from erased where hash = $1', [hash])
  await query('commit')
  return { contact: contact && contactOf(contact), deliveries: deliveries.map(recordOf), erasedAt: erased?.erased_at }
}

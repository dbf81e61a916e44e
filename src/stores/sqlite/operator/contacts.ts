import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
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
import { erasureSecret } from './erasure.ts'
import { cannotUse, lend, openForReading } from './open.ts'

export const contacts = (path: string): Contacts => ({
  contacts: filter => readContacts(path, filter),
  addedLast: async (filter, limit) =>
    lend(path, openForReading(path), database =>
      select(database, filter, 'order by contact.number desc', limit).map(contactOf),
    ),
  count: async filter => lend(path, openForReading(path), database => count(database, filter)),
  person: async email => lend(path, openForReading(path), database => readPerson(database, email)),
})

export const dialect: Dialect = {
  parameter: number => `?${number}`,
  time: time => time.getTime(),
  contains: (text, part) => `instr(${text}, ${part}) > 0`,
  domain: column => `substr(${column}, instr(${column}, '@') + 1)`,
  among: (column, parameter) => `${column} in (select value from json_each(${parameter}))`,
}

/** Contacts in memory at once. */
const PAGE = 1_000

/** Nothing is open until somebody reads. */
async function readContacts(path: string, filter: ContactFilter = {}): Promise<Generator<Contact>> {
  const last = 'select coalesce(max(number), 0) as number from contact'
  const row = (await lend(path, openForReading(path), database => database.prepare(last).get())) as { number: number }
  return readPages(path, { ...filter, upTo: row.number })
}

/** One transaction for all pages would keep the service from shortening its log for as long as the reader takes. */
function* readPages(path: string, which: Which): Generator<Contact> {
  const database = openForReading(path)
  try {
    for (let above: number | undefined, rows: readonly Row[]; ; above = rows.at(-1)!.number) {
      rows = select(database, { ...which, above }, 'order by contact.number', PAGE)
      yield* rows.map(contactOf)
      if (rows.length < PAGE) break
    }
  } catch (error) {
    throw cannotUse(path, error)
  } finally {
    database.close()
  }
}

interface Row extends ContactRow {
  readonly number: number
}

function select(database: DatabaseSync, which: Which, order: string, limit: number): readonly Row[] {
  const { where, values } = conditionsOf(which, dialect)
  const sql = `select contact.number, ${CONTACT_COLUMNS} from contact ${where} ${order} limit ${limit}`
  return database.prepare(sql).all(...(values as SQLInputValue[])) as unknown as readonly Row[]
}

function count(database: DatabaseSync, filter: ContactFilter): number {
  const { where, values } = conditionsOf(filter, dialect)
  const sql = `select count(*) as n from contact ${where}`
  return (database.prepare(sql).get(...(values as SQLInputValue[])) as { n: number }).n
}

function readPerson(database: DatabaseSync, email: string): Person {
  database.exec('begin')
  const key = emailKey(email)
  const contact = database.prepare(`select ${CONTACT_COLUMNS} from contact where email_key = ?`).get(key)
  const deliveries = database.prepare(
    `select id, event_name, ${RECORD_COLUMNS} from contact join delivery on delivery.contact = contact.number` +
      ' where email_key = ? order by delivery.number',
  )
  const secret = erasureSecret(database)
  const hash = secret === undefined ? '' : erasureHash(secret, email)
  const erased = database.prepare('select erased_at from erased where hash = ?').get(hash)
  return {
    contact: contact && contactOf(contact as unknown as ContactRow),
    deliveries: (deliveries.all(key) as unknown as RecordRow[]).map(recordOf),
    erasedAt: erased && new Date(erased.erased_at as number),
  }
}

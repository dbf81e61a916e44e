import type { Contact, ContactState, DeliveryRecord, HoldReason } from '../../waitlist/rules/contact.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import {
  CONTACT_COLUMNS,
  type ContactRow,
  contactOf,
  RECORD_COLUMNS,
  type RecordRow,
  recordOf,
  SOURCE_LABEL,
} from '../rows.ts'
import { type Dialect, type Engine, lend, type Sql, type Value } from '../sql.ts'
import { erasedAt } from './erasure.ts'

/** Which contacts: those for which all of it holds. */
export interface ContactFilter {
  /**
   * A part of the address or the name, 1..255 code points. ASCII letters may have another case; in a name on PostgreSQL, all
   * letters whose case the locale of the database knows.
   */
  readonly search?: string | undefined
  /** Signups from then on. */
  readonly since?: Date | undefined
  /** Signups before then. */
  readonly until?: Date | undefined
  readonly state?: ContactState | undefined
  /** Why they are held, of those who are. */
  readonly reason?: HoldReason | undefined
  /** Of the address, without its subdomains; case-insensitive. */
  readonly domain?: string | undefined
  /** What `sourceLabel` returns. */
  readonly source?: string | undefined
}

/** What is stored about an address. Somebody who was erased may have come back since. */
export interface Person {
  readonly contact: Contact | undefined
  /** Those of the contact, the oldest first. */
  readonly deliveries: readonly DeliveryRecord[]
  /** When the operator erased the address here, if it was. */
  readonly erasedAt: Date | undefined
}

/** Contacts, as the operator reads them. */
export const contacts = (engine: Engine) => ({
  /**
   * Contacts that joined before the call, in the order in which they did. Resolves when they can be read.
   *
   * They are read a page at a time, as fast as they are taken, and nothing is held in the store between two pages. So a
   * contact is as it was when its page was read, and one that was removed meanwhile is missing.
   */
  async contacts(filter: ContactFilter & Pick<Which, 'addresses'> = {}): Promise<AsyncIterable<Contact>> {
    const last = 'select coalesce(max(number), 0) as number from contact'
    const [row] = await lend(engine, 'reading', sql => sql.all<{ number: number }>(last))
    // Nothing is open until somebody reads.
    return readPages(engine, { ...filter, upTo: row!.number })
  },
  /** Those that were added last, the last one first: `limit` at most. */
  addedLast: (filter: ContactFilter, limit: number): Promise<readonly Contact[]> =>
    lend(engine, 'reading', async sql => (await select(sql, filter, 'desc', limit)).map(contactOf)),
  /** Everything about the person with this address, at one moment. */
  person: (email: string): Promise<Person> =>
    lend(engine, 'reading', sql => sql.snapshot(sql => readPerson(sql, email))),
})

/** Contacts in memory at once. */
const PAGE = 1_000

/** One transaction for all pages would keep the store from clearing up behind itself for as long as the reader takes. */
async function* readPages(engine: Engine, which: Which): AsyncGenerator<Contact> {
  const { sql, close } = await engine.open('reading')
  try {
    for (let above: number | undefined, rows: readonly Row[]; ; above = rows.at(-1)!.number) {
      rows = await select(sql, { ...which, above }, 'asc', PAGE)
      yield* rows.map(contactOf)
      if (rows.length < PAGE) break
    }
  } catch (error) {
    throw engine.cannotUse(error)
  } finally {
    await close()
  }
}

interface Row extends ContactRow {
  readonly number: number
}

function select(sql: Sql, which: Which, order: 'asc' | 'desc', limit: number): Promise<readonly Row[]> {
  const { where, values } = conditionsOf(which, sql.dialect)
  const text =
    `select contact.number, ${CONTACT_COLUMNS} from contact ${where}` +
    ` order by contact.number ${order} limit $${values.length + 1}`
  return sql.all<Row>(text, [...values, limit])
}

async function readPerson(sql: Sql, email: string): Promise<Person> {
  const key = emailKey(email)
  const [contact] = await sql.all<ContactRow>(`select ${CONTACT_COLUMNS} from contact where email_key = $1`, [key])
  const deliveries = await sql.all<RecordRow>(
    `select id, event_name, ${RECORD_COLUMNS} from contact join delivery on delivery.contact = contact.number` +
      ' where email_key = $1 order by delivery.number',
    [key],
  )
  return {
    contact: contact && contactOf(contact),
    deliveries: deliveries.map(recordOf),
    erasedAt: (await erasedAt(sql, [email])).get(key),
  }
}

/** A filter, and the rows that it is limited to. */
export interface Which extends ContactFilter {
  readonly addresses?: readonly string[] | undefined
  readonly above?: number | undefined
  readonly upTo?: number | undefined
}

/** `where …`, or nothing if all contacts are meant, and its values. Each engine folds the case of names in its own way. */
export function conditionsOf(which: Which, { contains, domain, among, elements }: Dialect) {
  const { search, since, until, state, reason, source, addresses, above, upTo } = which
  const values: Value[] = []
  const given = (value: Value) => `$${values.push(value)}`
  const conditions = [
    above !== undefined && `contact.number > ${given(above)}`,
    upTo !== undefined && `contact.number <= ${given(upTo)}`,
    since !== undefined && `contact.created_at >= ${given(since)}`,
    until !== undefined && `contact.created_at < ${given(until)}`,
    // Not a parameter, so that the index on those who are pending is used.
    state !== undefined && `contact.state = '${state}'`,
    reason !== undefined && `contact.reason = ${given(reason)}`,
    which.domain !== undefined && `${domain('contact.email_key')} = ${given(emailKey(which.domain))}`,
    addresses !== undefined &&
      among('contact.email_key', elements(given(JSON.stringify(addresses.map(emailKey))), 'text')),
    source !== undefined && `${SOURCE_LABEL} = ${given(source)}`,
    search !== undefined &&
      `(${contains('contact.email_key', given(emailKey(search)))}` +
        ` or ${contains('lower(contact.name)', `lower(${given(search)})`)})`,
  ].filter(each => each !== false)
  return { where: conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`, values }
}

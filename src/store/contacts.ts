import type { Contact, ContactState, DeliveryRecord, HoldReason } from '../signup/contact.ts'
import { emailKey } from '../signup/contact.ts'
import type { Database, Dialect, Tx, Value } from './database.ts'
import { erasedAt } from './erasures.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf, RECORD_COLUMNS, type RecordRow, recordOf } from './rows.ts'

/** Which contacts: those for which all of it holds. */
export interface ContactFilter {
  /** A part of the address or the name, whatever the case of its letters; 1..255 code points. */
  readonly search?: string | undefined
  /** Signups from then on. */
  readonly since?: Date | undefined
  /** Signups before then. */
  readonly until?: Date | undefined
  readonly state?: ContactState | undefined
  /** Why they are held, of those who are. */
  readonly reason?: HoldReason | undefined
  /** What `sourceLabel` returns. */
  readonly source?: string | undefined
  readonly addresses?: readonly string[] | undefined
}

/** A filter, and the rows that it is limited to. */
export interface Which extends ContactFilter {
  readonly above?: number | undefined
  readonly upTo?: number | undefined
}

/** Contacts in memory at once. */
const PAGE = 1_000

/**
 * Contacts that joined before the first is read, in the order in which they did, a page at a time. Nothing is held in the
 * store between two pages: a contact is as it was when its page was read.
 */
export async function* contactPages(read: Database['read'], filter: ContactFilter): AsyncGenerator<readonly Contact[]> {
  const upTo = await read(async tx => {
    const [row] = await tx.all<{ number: number }>('select coalesce(max(number), 0) as number from contact')
    return row!.number
  })
  for (let above = 0; ; ) {
    const rows = await read(tx => select(tx, { ...filter, above, upTo }, 'asc', PAGE))
    yield rows.map(contactOf)
    if (rows.length < PAGE) return
    above = rows.at(-1)!.number
  }
}

/** Those that were added last, the last one first. */
export const newestContacts = async (tx: Tx, filter: ContactFilter, limit: number): Promise<readonly Contact[]> =>
  (await select(tx, filter, 'desc', limit)).map(contactOf)

export async function countContacts(tx: Tx, filter: ContactFilter): Promise<number> {
  const { where, values } = conditionsOf(filter, tx.dialect)
  const [row] = await tx.all<{ count: number }>(`select count(*) as count from contact ${where}`, values)
  return row!.count
}

function select(tx: Tx, which: Which, order: 'asc' | 'desc', limit: number) {
  const { where, values } = conditionsOf(which, tx.dialect)
  return tx.all<ContactRow & { readonly number: number }>(
    `select contact.number, ${CONTACT_COLUMNS} from contact ${where}` +
      ` order by contact.number ${order} limit $${values.length + 1}`,
    [...values, limit],
  )
}

/** What is stored about an address. Somebody who was erased may have come back since. */
export interface Person {
  readonly contact: Contact | undefined
  /** Those of the contact, the oldest first. */
  readonly deliveries: readonly DeliveryRecord[]
  readonly erasedAt: Date | undefined
}

export async function personOf(tx: Tx, email: string): Promise<Person> {
  const key = emailKey(email)
  const [contact] = await tx.all<ContactRow>(`select ${CONTACT_COLUMNS} from contact where email_key = $1`, [key])
  const deliveries = await tx.all<RecordRow>(
    `select id, ${RECORD_COLUMNS} from contact join delivery on delivery.contact = contact.number` +
      ' where email_key = $1 order by delivery.number',
    [key],
  )
  return {
    contact: contact && contactOf(contact),
    deliveries: deliveries.map(recordOf),
    erasedAt: (await erasedAt(tx, [email])).get(key),
  }
}

/** `where …`, or nothing if all contacts are meant, and its values. */
export function conditionsOf(which: Which, { among }: Dialect) {
  const { search, since, until, state, reason, source, addresses, above, upTo } = which
  const values: Value[] = []
  const given = (value: Value) => `$${values.push(value)}`
  const pattern = (text: string) => `lower(${given(`%${text.replaceAll(/[\\%_]/g, '\\$&')}%`)}) escape '\\'`
  const conditions = [
    above !== undefined && `contact.number > ${given(above)}`,
    upTo !== undefined && `contact.number <= ${given(upTo)}`,
    since !== undefined && `contact.created_at >= ${given(since.getTime())}`,
    until !== undefined && `contact.created_at < ${given(until.getTime())}`,
    // Not a parameter, so that the index on that state is used.
    state !== undefined && `contact.state = '${state}'`,
    reason !== undefined && `contact.reason = ${given(reason)}`,
    addresses !== undefined && among('contact.email_key', given(addresses.map(emailKey))),
    source !== undefined && `contact.source_label = ${given(source)}`,
    search !== undefined &&
      `(contact.email_key like ${pattern(search)} or lower(contact.name) like ${pattern(search)})`,
  ].filter(each => each !== false)
  return { where: conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`, values }
}

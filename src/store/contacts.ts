import {
  type Contact,
  type ContactState,
  emailKey,
  type HoldReason,
  type Invitation,
  type Source,
  sourceLabel,
} from '../signup/contact.ts'
import type { Database, Dialect, Row, Tx, Value } from './database.ts'
import { mailboxOf } from './mailbox.ts'

/** The columns that a query must return for a contact. */
export const CONTACT_COLUMNS =
  'contact.id, contact.name, contact.email, contact.state as contact_state, contact.created_at, contact.provider_id,' +
  ' contact.event_name, contact.event_at, contact.source, contact.reason, contact.invited_at, contact.invite_name,' +
  ' contact.code, contact.redeemed_at, contact.confirmation_sent_at, contact.confirmations_sent, contact.confirmed_at'

export interface ContactRow {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly contact_state: ContactState
  readonly created_at: number
  readonly provider_id: string | null
  readonly event_name: string | null
  readonly event_at: number | null
  readonly source: string | null
  readonly reason: HoldReason | null
  readonly invited_at: number | null
  readonly invite_name: string | null
  readonly code: string | null
  readonly redeemed_at: number | null
  readonly confirmation_sent_at: number | null
  readonly confirmations_sent: number | null
  readonly confirmed_at: number | null
}

const dateOf = (time: number | null): Date | undefined => (time === null ? undefined : new Date(time))

export function contactOf(row: ContactRow): Contact {
  const { id, name, email, contact_state: state, event_name, event_at } = row
  const { confirmation_sent_at: sentAt, confirmations_sent: times } = row
  return {
    id,
    name,
    email,
    state,
    reason: row.reason ?? undefined,
    createdAt: new Date(row.created_at),
    confirmation: sentAt === null || times === null ? undefined : { at: new Date(sentAt), times },
    confirmedAt: dateOf(row.confirmed_at),
    source: row.source === null ? undefined : (JSON.parse(row.source) as Source),
    providerId: row.provider_id ?? undefined,
    event: event_name === null || event_at === null ? undefined : { name: event_name, at: new Date(event_at) },
    invitation: invitationOf(row),
  }
}

function invitationOf({ invited_at, invite_name, code, redeemed_at }: ContactRow): Invitation | undefined {
  if (invited_at === null || invite_name === null || code === null) return undefined
  return { code, at: new Date(invited_at), name: invite_name, redeemedAt: dateOf(redeemed_at) }
}

/** A contact that is about to be stored. */
interface NewContact extends Pick<Contact, 'id' | 'name' | 'email' | 'state' | 'reason' | 'source'> {
  readonly createdAt: number
  /** The name of the event that it joined now; null: it has none. */
  readonly eventName: string | null
}

/** Every column that a new contact may have a value for. A confirmation is asked for now. */
export function contactRow(contact: NewContact, now: number): Row {
  const { id, name, email, state, source, reason, eventName } = contact
  const key = emailKey(email)
  const isUnconfirmed = state === 'unconfirmed'
  return {
    id,
    name,
    email,
    email_key: key,
    state,
    created_at: contact.createdAt,
    event_name: eventName,
    event_at: eventName === null ? null : now,
    source: source === undefined ? null : JSON.stringify(source),
    source_label: sourceLabel(source),
    reason: reason ?? null,
    mailbox: mailboxOf(key),
    confirmation_sent_at: isUnconfirmed ? now : null,
    confirmations_sent: isUnconfirmed ? 1 : null,
  }
}

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
  const upTo = await read(lastNumber)
  for (let above = 0; ; ) {
    const rows = await read(tx => select(tx, { ...filter, above, upTo }, 'asc', PAGE))
    yield rows.map(contactOf)
    if (rows.length < PAGE) return
    above = rows.at(-1)!.number
  }
}

/** That of the contact that was added last; 0: there is none. */
export async function lastNumber(tx: Tx): Promise<number> {
  const [row] = await tx.all<{ number: number }>('select coalesce(max(number), 0) as number from contact')
  return row!.number
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

/** `where …`, or nothing if all contacts are meant, and its values. */
export function conditionsOf(which: Which, { among }: Dialect) {
  const { search, since, until, state, reason, source, addresses, above, upTo } = which
  const values: Value[] = []
  const bind = (value: Value) => `$${values.push(value)}`
  const pattern = (text: string) => `lower(${bind(`%${text.replaceAll(/[\\%_]/g, '\\$&')}%`)}) escape '\\'`
  const conditions = [
    above !== undefined && `contact.number > ${bind(above)}`,
    upTo !== undefined && `contact.number <= ${bind(upTo)}`,
    since !== undefined && `contact.created_at >= ${bind(since.getTime())}`,
    until !== undefined && `contact.created_at < ${bind(until.getTime())}`,
    // Not a parameter, so that the index on that state is used.
    state !== undefined && `contact.state = '${state}'`,
    reason !== undefined && `contact.reason = ${bind(reason)}`,
    addresses !== undefined && among('contact.email_key', bind(addresses.map(emailKey))),
    source !== undefined && `contact.source_label = ${bind(source)}`,
    search !== undefined &&
      `(contact.email_key like ${pattern(search)} or lower(contact.name) like ${pattern(search)})`,
  ].filter(each => each !== false)
  return { where: conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`, values }
}

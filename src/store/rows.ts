import {
  type Contact,
  type ContactState,
  type DeliveryKind,
  type DeliveryRecord,
  type DeliveryState,
  emailKey,
  eventId,
  type HoldReason,
  type Invitation,
  type Source,
  sourceLabel,
} from '../signup/contact.ts'
import type { Row } from './database.ts'
import { mailboxOf } from './mailbox.ts'

/** Rows of contacts and deliveries, and what they stand for. */

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
  if (invited_at === null || code === null) return undefined
  return { code, at: new Date(invited_at), name: invite_name ?? undefined, redeemedAt: dateOf(redeemed_at) }
}

/** A contact that is about to be stored. */
export interface NewContact extends Pick<Contact, 'id' | 'name' | 'email' | 'state' | 'reason' | 'source'> {
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

/** The columns that a query must return for a delivery, to show it to the operator. */
export const RECORD_COLUMNS =
  'delivery.number, delivery.destination, delivery.kind, delivery.state, delivery.attempts, delivery.due_at, delivery.why,' +
  ' delivery.settled_at'

export interface RecordRow extends Pick<ContactRow, 'id'> {
  readonly number: number
  readonly destination: string
  readonly kind: DeliveryKind
  readonly state: DeliveryState
  readonly attempts: number
  readonly due_at: number
  readonly why: string | null
  readonly settled_at: number | null
}

export function recordOf(row: RecordRow): DeliveryRecord {
  const { number, id, kind, destination, state, attempts, due_at, why, settled_at } = row
  return {
    number,
    contactId: id,
    eventId: kind === 'joined' || kind === 'invited' ? eventId({ id }, kind) : null,
    kind,
    destination,
    state,
    attempts,
    due: new Date(due_at),
    why,
    settledAt: settled_at === null ? null : new Date(settled_at),
  }
}

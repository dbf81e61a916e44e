import { type DigestSettlement, LEASE } from '../waitlist/ports/outbox.ts'
import type { HoldReason } from '../waitlist/rules/contact.ts'
import {
  type Contact,
  type ContactState,
  type DeliveryRecord,
  type DeliveryState,
  type EventKind,
  eventId,
  type Invitation,
  type Source,
} from '../waitlist/rules/contact.ts'
import type { Columns } from './sql.ts'

/**
 * Everything a store keeps, in the order of their references. `doubt` of a leased row is true, as it will be for the process
 * that takes it over when the lease ends. The lease itself belongs to a process, and is not part of the row.
 */
export const tables = {
  contact: {
    number: 'whole',
    id: 'uuid',
    name: 'text',
    email: 'text',
    email_key: 'text',
    state: 'text',
    created_at: 'time',
    provider_id: 'text',
    event_name: 'text',
    event_at: 'time',
    source: 'json',
    reason: 'text',
    mailbox: 'text',
    invited_at: 'time',
    invite_name: 'text',
    code: 'text',
    redeemed_at: 'time',
    asked_at: 'time',
    asks: 'whole',
    confirmed_at: 'time',
  },
  delivery: {
    number: 'whole',
    contact: 'whole',
    destination: 'text',
    event: 'text',
    state: 'text',
    attempts: 'whole',
    doubt: 'bit',
    due_at: 'time',
    why: 'text',
    settled_at: 'time',
  },
  erased: {
    number: 'whole',
    hash: 'text',
    erased_at: 'time',
  },
  secret: {
    number: 'whole',
    name: 'text',
    value: 'text',
  },
} as const satisfies Record<string, Columns>

export type Table = keyof typeof tables
export const tableNames = Object.keys(tables) as readonly Table[]

/** Rows of contacts and deliveries, as both engines return them: times are in milliseconds since 1970. */

/** The columns that a query must return for a contact. */
export const CONTACT_COLUMNS =
  'contact.id, contact.name, contact.email, contact.state as contact_state, contact.created_at, contact.provider_id,' +
  ' contact.event_name, contact.event_at, contact.source, contact.reason, contact.invited_at, contact.invite_name,' +
  ' contact.code, contact.redeemed_at, contact.asked_at, contact.asks, contact.confirmed_at'

export interface ContactRow {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly contact_state: ContactState
  readonly created_at: number
  readonly provider_id: string | null
  readonly event_name: string | null
  readonly event_at: number | null
  /** JSON. */
  readonly source: string | null
  readonly reason: HoldReason | null
  readonly invited_at: number | null
  readonly invite_name: string | null
  readonly code: string | null
  readonly redeemed_at: number | null
  readonly asked_at: number | null
  readonly asks: number | null
  readonly confirmed_at: number | null
}

export function contactOf(row: ContactRow): Contact {
  const { id, name, email, contact_state: state, created_at, provider_id, event_name, event_at, source } = row
  const { asked_at, asks, confirmed_at } = row
  return {
    id,
    name,
    email,
    state,
    reason: row.reason ?? undefined,
    createdAt: new Date(created_at),
    asked: asked_at === null || asks === null ? undefined : { at: new Date(asked_at), times: asks },
    confirmedAt: confirmed_at === null ? undefined : new Date(confirmed_at),
    source: sourceOf(source),
    providerId: provider_id ?? undefined,
    event: event_name === null || event_at === null ? undefined : { name: event_name, at: new Date(event_at) },
    invitation: invitationOf(row),
  }
}

function invitationOf({ invited_at, invite_name, code, redeemed_at }: ContactRow): Invitation | undefined {
  if (invited_at === null || code === null) return undefined
  const redeemedAt = redeemed_at === null ? undefined : new Date(redeemed_at)
  return { code, at: new Date(invited_at), name: invite_name ?? undefined, redeemedAt }
}

const sourceOf = (stored: ContactRow['source']): Source | undefined =>
  stored === null ? undefined : JSON.parse(stored)

/** What a source is counted and found by (`sourceLabel`), in both engines. */
export const SOURCE_LABEL = "coalesce(contact.source ->> 'utm_source', contact.source ->> 'ref')"

/** When what a delivery tells of happened; a hand-over tells of nothing. */
export const EVENT_AT =
  "case delivery.event when 'invited' then contact.invited_at when 'asked' then contact.asked_at else contact.event_at end"

/** The columns that a query must return for a delivery, in addition to its contact's, to show it to the operator. */
export const RECORD_COLUMNS =
  'delivery.number, delivery.destination, delivery.event, delivery.state, delivery.attempts, delivery.due_at, delivery.why,' +
  ' delivery.settled_at'

export interface RecordRow extends Pick<ContactRow, 'id' | 'event_name'> {
  readonly number: number
  readonly destination: string
  readonly event: EventKind
  readonly state: DeliveryState
  readonly attempts: number
  readonly due_at: number
  readonly why: string | null
  readonly settled_at: number | null
}

export function recordOf(row: RecordRow): DeliveryRecord {
  const { number, id, event_name, event, destination, state, attempts, due_at, why, settled_at } = row
  return {
    number,
    contactId: id,
    eventId: event === 'asked' || (event === 'joined' && event_name === null) ? null : eventId({ id }, event),
    event,
    destination,
    state,
    attempts,
    due: new Date(due_at),
    why,
    settledAt: settled_at === null ? null : new Date(settled_at),
  }
}

/** A mail that asks again takes the row of the one before. */
export const UPSERT_DELIVERY =
  "on conflict (contact, destination, event) do update set state = 'waiting', attempts = excluded.attempts," +
  ' doubt = excluded.doubt, due_at = excluded.due_at, token = excluded.token, why = null, settled_at = null'

/** Milliseconds from the beginning of a digest in which no other one begins, unless its end is stored before. */
export const underWay = (distance: number): number => Math.max(distance, LEASE)

/** The milliseconds to the next digest: none after an attempt that certainly had no effect. */
export const untilDigest = (settlement: DigestSettlement, distance: number): number =>
  settlement.is === 'waiting' && !settlement.doubt ? 0 : distance

import { type DeliveryRecord, type DeliveryState, eventId, type JoinedEvent } from '../waitlist/contact.ts'

/** Milliseconds since 1970, or a date: whatever the engine keeps. */
type Time = number | Date

/** What a query about deliveries must give of the event and its contact. */
export const EVENT_COLUMNS =
  'id, contact.name, email, contact.created_at, provider_id, event.name as event_name, event.created_at as event_at'

/** Joins both to a delivery. */
export const joinEvent = (delivery = 'delivery') =>
  `join event on event.contact = ${delivery}.contact join contact on contact.number = ${delivery}.contact`

export interface EventRow {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly created_at: Time
  readonly provider_id: string | null
  readonly event_name: string
  readonly event_at: Time
}

export function eventOf({ id, name, email, created_at, provider_id, event_name, event_at }: EventRow): JoinedEvent {
  const contact = {
    ...{ id, name, email, state: 'listed' as const, createdAt: new Date(created_at) },
    ...(provider_id === null ? {} : { providerId: provider_id }),
  }
  return { id: eventId(contact), name: event_name, at: new Date(event_at), contact }
}

/** What a query must give of a delivery and its contact for an operator to see. */
export const RECORD_COLUMNS = 'delivery.number, destination, delivery.state, attempts, due_at, why, settled_at'

export interface RecordRow {
  /** PostgreSQL gives such numbers as text. */
  readonly number: number | string
  readonly id: string
  readonly destination: string
  readonly state: DeliveryState
  readonly attempts: number
  readonly due_at: Time
  readonly why: string | null
  readonly settled_at: Time | null
}

export function recordOf({ number, id, due_at, settled_at, ...row }: RecordRow): DeliveryRecord {
  const { destination, state, attempts, why } = row
  return {
    ...{ number: Number(number), eventId: eventId({ id }), contactId: id, destination, state, attempts },
    ...{ due: new Date(due_at), why, settledAt: settled_at === null ? null : new Date(settled_at) },
  }
}

import { eventId, type JoinedEvent } from '../waitlist/contact.ts'

/** What a query about deliveries must give of the event and its contact. */
export const EVENT_COLUMNS =
  'id, contact.name, email, contact.created_at, provider_id, event.name as event_name, event.created_at as event_at'

/** Joins both to a delivery. */
export const JOIN_EVENT =
  'join event on event.contact = delivery.contact join contact on contact.number = delivery.contact'

export interface EventRow {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly created_at: number
  readonly provider_id: string | null
  readonly event_name: string
  readonly event_at: number
}

export function eventOf({ id, name, email, created_at, provider_id, event_name, event_at }: EventRow): JoinedEvent {
  const contact = {
    ...{ id, name, email, state: 'listed' as const, createdAt: new Date(created_at) },
    ...(provider_id === null ? {} : { providerId: provider_id }),
  }
  return { id: eventId(contact), name: event_name, at: new Date(event_at), contact }
}

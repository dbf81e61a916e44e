/** The words of the design as types. */

/**
 * `pending`: recorded here, the provider has not confirmed it. `listed`: on the list.
 * Without a provider a contact is `listed` at once.
 */
export type ContactState = 'pending' | 'listed'

/** A person on the list. */
export interface Contact {
  /** UUIDv7 (RFC 9562 §5.7), lower case, given by the store. */
  readonly id: string
  readonly name: string
  /** As first typed; contacts are told apart by its ASCII lower case. */
  readonly email: string
  readonly state: ContactState
  /** When the signup was recorded. */
  readonly createdAt: Date
  /** What the provider calls this contact, where it said so. */
  readonly providerId?: string
}

/** "This contact joined": exactly one for each contact that joined here, born in the transaction that lists it. */
export interface JoinedEvent {
  /** Stable over all attempts, destinations and restarts: 40 characters of `[a-z0-9_-]`. Receivers drop a repeated one. */
  readonly id: string
  /** The automation's name for it, such as `waitlist.joined`. */
  readonly name: string
  readonly at: Date
  readonly contact: Contact
}

/** There is one event for each contact, so the contact's id names it. */
export const eventId = (contact: Pick<Contact, 'id'>): string => `evt_${contact.id}`

/** `waiting` for its time, `delivered`, or `abandoned`: given up with a reason, until somebody asks for a replay. */
export const deliveryStates = ['waiting', 'delivered', 'abandoned'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** A delivery as its operator sees it in a list: without the contact's name and address. */
export interface DeliveryRecord {
  /** Names it, from 1. */
  readonly number: number
  readonly eventId: string
  readonly contactId: string
  readonly destination: string
  readonly state: DeliveryState
  /** How often it was begun, since it was born or replayed. */
  readonly attempts: number
  /** While it waits, when it is due; while it is being attempted, the end of its lease. */
  readonly due: Date
  /** What the last attempt came to. */
  readonly why: string | null
  /** When it was delivered or abandoned. */
  readonly settledAt: Date | null
}

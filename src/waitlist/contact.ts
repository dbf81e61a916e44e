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
}

/** "This contact joined": exactly one for each listed contact, born in the transaction that lists it. */
export interface JoinedEvent {
  /** The automation's name for it, such as `waitlist.joined`. */
  readonly name: string
  readonly contact: Contact
}

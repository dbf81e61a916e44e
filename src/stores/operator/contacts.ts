import type { Contact, ContactState, DeliveryRecord, HoldReason } from '../../waitlist/rules/contact.ts'

/** Contacts, as the operator reads them. */
export interface Contacts {
  /**
   * Contacts that joined before the call, in the order in which they did. Resolves when they can be read.
   *
   * They are read a page at a time, as fast as they are taken, and nothing is held in the store between two pages. So a
   * contact is as it was when its page was read, and one that was removed meanwhile is missing.
   */
  contacts(filter?: ContactFilter): Promise<Iterable<Contact> | AsyncIterable<Contact>>
  /** Those that were added last, the last one first: `limit` at most. */
  addedLast(filter: ContactFilter, limit: number): Promise<readonly Contact[]>
  count(filter: ContactFilter): Promise<number>
  /** Everything about the person with this address, at one moment. */
  person(email: string): Promise<Person>
}

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
  readonly heldFor?: HoldReason | undefined
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

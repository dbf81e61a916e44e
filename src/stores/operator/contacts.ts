import type { Contact } from '../../waitlist/contact.ts'

/** Contacts, as the operator reads them. */
export interface Contacts {
  /** All contacts that joined before the call, in the order in which they did. Resolves when they can be read. */
  contacts(): Promise<Iterable<Contact> | AsyncIterable<Contact>>
}

/** The contact that a mail was sent to. The address has an index; the id tells it from one that signs up anew. */
export interface Addressee {
  readonly id: string
  readonly email: string
}

/** What the links in mails ask of the store. */
export interface Confirmations {
  /**
   * Confirms a contact, which then goes on as a new signup does that needs no confirmation: `now`, once. `before`: it was
   * confirmed, or need not be. Null: there is no such contact.
   */
  confirm(contact: Addressee): Promise<'now' | 'before' | null>

  /**
   * Erases the contact with this address, as the operator's removal does, also if it has signed up anew since the mail: it asks
   * to be gone. False: it is not on the list.
   */
  leave(email: string): Promise<boolean>

  /**
   * Deletes up to `most` contacts that are unconfirmed and were sent no mail within the last `within` milliseconds, nor have
   * one waiting, and returns how many there were. They may sign up anew.
   */
  expire(within: number, most: number): Promise<number>
}

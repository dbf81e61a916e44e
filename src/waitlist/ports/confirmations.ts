/** The contact that a mail was sent to. The address has an index; the id tells it from one that signs up anew. */
export interface Addressee {
  readonly id: string
  readonly email: string
}

/** What the links in mails ask of the store. */
export interface Confirmations {
  /**
   * Lets an unconfirmed contact go on as a new signup does that needs no confirmation: `now`, once. `before`: it had gone on
   * already, or never had to wait. Null: there is no such contact. Only where new contacts are asked is it kept as confirmed.
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

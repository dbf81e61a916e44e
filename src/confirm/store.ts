import type { ContactState } from '../signup/contact.ts'
import { activate, type SignupTargets } from '../store/activate.ts'
import type { Tx } from '../store/database.ts'

/** The contact that a mail was sent to: this signup, not a later one with the same address. */
export interface Addressee {
  readonly id: string
  readonly createdAt: Date
}

/** What a link leads to. */
export interface Linked {
  readonly number: number
  readonly email: string
  readonly state: ContactState
}

/** Undefined: it is not on the list any more. The time finds it by an index; the id has none. */
export async function find(tx: Tx, { id, createdAt }: Addressee, lock = ''): Promise<Linked | undefined> {
  const [contact] = await tx.all<Linked>(
    `select number, email, state from contact where created_at = $1 and id = $2 ${lock}`,
    [createdAt.getTime(), id],
  )
  return contact
}

/**
 * Lets an unconfirmed contact go on as a new signup does that needs no confirmation: `now`, once. `before`: it had gone on
 * already, or never had to wait. Null: there is no such contact.
 */
export async function confirm(tx: Tx, addressee: Addressee, targets: SignupTargets): Promise<'now' | 'before' | null> {
  const contact = await find(tx, addressee, tx.dialect.forUpdate)
  if (contact === undefined) return null
  const activated = await activate(tx, 'unconfirmed', [contact.number], targets)
  return activated.length > 0 || tx.again ? 'now' : 'before'
}

/**
 * Deletes up to `most` contacts that are unconfirmed and whose last mail a server accepted before then. They may sign up
 * anew. Nobody is deleted whose mail was not accepted. Returns how many there were.
 */
export const expire = (tx: Tx, acceptedBefore: number, most: number): Promise<number> =>
  tx.run(
    "delete from contact where number in (select number from contact where state = 'unconfirmed'" +
      ' and confirmation_sent_at < $1 and exists (select 1 from delivery where delivery.contact = contact.number' +
      " and kind = 'confirmation' and delivery.state = 'delivered' and settled_at < $1)" +
      ' order by confirmation_sent_at limit $2)',
    [acceptedBefore, most],
  )

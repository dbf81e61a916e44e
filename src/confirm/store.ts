import type { ContactState } from '../signup/contact.ts'
import { emailKey } from '../signup/contact.ts'
import { activate, type SignupTargets } from '../store/activate.ts'
import type { Tx } from '../store/database.ts'

/** The contact that a mail was sent to. The id tells it from one that signs up anew with the same address. */
export interface Addressee {
  readonly id: string
  readonly email: string
}

/**
 * Lets an unconfirmed contact go on as a new signup does that needs no confirmation: `now`, once. `before`: it had gone on
 * already, or never had to wait. Null: there is no such contact.
 */
export async function confirm(
  tx: Tx,
  { id, email }: Addressee,
  targets: SignupTargets,
): Promise<'now' | 'before' | null> {
  const [contact] = await tx.all<{ number: number; state: ContactState }>(
    `select number, state from contact where email_key = $1 and id = $2 ${tx.dialect.forUpdate}`,
    [emailKey(email), id],
  )
  if (contact === undefined) return null
  const activated = await activate(tx, 'unconfirmed', [contact.number], targets)
  return activated.length > 0 || tx.again ? 'now' : 'before'
}

/**
 * Deletes up to `most` contacts that are unconfirmed and were sent no mail since then, nor have one waiting. They may sign up
 * anew. Returns how many there were.
 */
export const expire = (tx: Tx, sentBefore: number, most: number): Promise<number> =>
  tx.run(
    "delete from contact where number in (select number from contact where state = 'unconfirmed'" +
      ' and confirmation_sent_at < $1 and not exists (select 1 from delivery where delivery.contact = contact.number' +
      " and kind = 'confirmation' and (delivery.state = 'waiting' or settled_at >= $1)) order by confirmation_sent_at limit $2)",
    [sentBefore, most],
  )

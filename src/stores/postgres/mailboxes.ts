import type { Filled } from '../../waitlist/ports/upkeep.ts'
import { mailboxOf } from '../../waitlist/rules/mailbox.ts'
import type { Query } from './client.ts'

/** Apart from the change, since it needs no lock. */
const PAGE = 'select number, email_key, mailbox from contact where number > $1::bigint order by number limit $2'

/**
 * Settlements lock contacts in no order, so it waits for nobody: what is locked is left for the next pass. A contact that
 * was erased meanwhile is not there; one that another instance has just filled is not changed again.
 */
const FILL = `
with free as (
  select number from contact where number = any($1::bigint[]) order by number for no key update skip locked
)
update contact set mailbox = given.mailbox from unnest($1::bigint[], $2::text[]) as given (number, mailbox)
where contact.number = any(array(select number from free)) and contact.number = given.number
  and contact.mailbox is distinct from given.mailbox
returning 1`

/** Looks at the next contacts. Both may be repeated, so a lost answer does no harm. */
export async function fillMailboxes(query: Query, after: number, most: number): Promise<Filled> {
  const rows = await query<Row>(PAGE, [after, most])
  const wrong = rows.filter(row => row.mailbox !== mailboxOf(row.email_key))
  const values = [wrong.map(({ number }) => number), wrong.map(({ email_key }) => mailboxOf(email_key))]
  const filled = wrong.length === 0 ? [] : await query(FILL, values)
  return { filled: filled.length, last: rows.length < most ? null : Number(rows.at(-1)!.number) }
}

interface Row {
  readonly number: string
  readonly email_key: string
  readonly mailbox: string | null
}

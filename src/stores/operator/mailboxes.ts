import type { Filled } from '../../waitlist/ports/upkeep.ts'
import { mailboxOf } from '../../waitlist/rules/mailbox.ts'
import type { Sql } from '../sql.ts'

/**
 * Looks at the next contacts, and stores the mailboxes behind their addresses. Both statements may be repeated, so a lost
 * answer does no harm.
 */
export async function fillMailboxes(sql: Sql, after: number, most: number): Promise<Filled> {
  const { among, elements, table, unlocked } = sql.dialect
  // Apart from the change, since it needs no lock.
  const page = await sql.all<{ number: number; email_key: string; mailbox: string | null }>(
    'select number, email_key, mailbox from contact where number > $1 order by number limit $2',
    [after, most],
  )
  const last = page.length < most ? null : page.at(-1)!.number
  const wrong = page
    .map(({ number, email_key, mailbox }) => ({ number, is: mailbox, mailbox: mailboxOf(email_key) }))
    .filter(({ is, mailbox }) => is !== mailbox)
  if (wrong.length === 0) return { filled: 0, last }
  // Settlements lock contacts in no order, so it waits for nobody: what is locked is left for the next pass. A contact that
  // was erased meanwhile is not there; one that another instance has just filled is not changed again.
  const free = `select number from contact where ${among('number', elements('$1', 'whole'))} order by number ${unlocked}`
  const filled = await sql.all(
    `update contact set mailbox = given.mailbox from ${table('$2', { number: 'whole', mailbox: 'text' })} as given` +
      ` where ${among('contact.number', free)} and contact.number = given.number` +
      ' and contact.mailbox is distinct from given.mailbox returning 1',
    [JSON.stringify(wrong.map(({ number }) => number)), JSON.stringify(wrong)],
  )
  return { filled: filled.length, last }
}

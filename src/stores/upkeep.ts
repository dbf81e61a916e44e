import type { Counts } from '../waitlist/alerts/counts.ts'
import type { Confirmations } from '../waitlist/ports/confirmations.ts'
import type { Invitations } from '../waitlist/ports/invitations.ts'
import type { Filled, Upkeep } from '../waitlist/ports/upkeep.ts'
import { mailboxOf } from '../waitlist/rules/mailbox.ts'
import type { Announcement } from './operator/announcement.ts'
import { confirm, expire } from './operator/confirmations.ts'
import { countAll, countListed } from './operator/counts.ts'
import { leave } from './operator/erasure.ts'
import { invitationOf, redeem } from './operator/invitations.ts'
import { pruneStep } from './operator/pruning.ts'
import { sharedSecret } from './secret.ts'
import type { Sql } from './sql.ts'

/** Milliseconds that a server has for each statement that counts everything. */
const COUNTING = 10_000

/** What both engines do in the same way. */
type Shared = Omit<Upkeep, 'acquireInterval'> & Invitations & Confirmations

/** What the running service asks beside signups and deliveries. `now`: null for the server's clock. */
export const upkeepOn = (sql: Sql, announcement: Announcement, now: () => Date | null): Shared => ({
  prune: (age, after, most, counting) => pruneStep(sql, { now: now(), age, after, most, counting, byHand: false }),
  fillMailboxes: (after, most) => fillMailboxes(sql, after, most),
  secret: name => sharedSecret(sql, name),
  invitation: code => invitationOf(sql, code),
  redeem: code => redeem(sql, code, now()),
  confirm: contact => confirm(sql, contact, announcement, now()),
  leave: email => leave(sql, email),
  expire: (within, most) => expire(sql, within, most, now()),
  ...countingOn(sql, now),
})

/** What takes long among millions. */
export const countingOn = (sql: Sql, now: () => Date | null): Pick<Shared, 'countListed' | 'counts'> => ({
  countListed: () => countListed(sql),
  counts: () => sql.snapshot(sql => countAll(sql, now()), COUNTING),
})

/** A method with its arguments, on its way to the thread of a file. */
export type UpkeepCall = { [Name in keyof Shared]: readonly [Name, ...Parameters<Shared[Name]>] }[keyof Shared]

export const callOn = (upkeep: Shared, [name, ...all]: UpkeepCall): Promise<unknown> =>
  (upkeep[name] as (...all: readonly unknown[]) => Promise<unknown>)(...all)

/** All who ask while a count is under way share it: each would take a connection or a thread for as long as it lasts. */
export function oneAtATime(count: () => Promise<Counts>): () => Promise<Counts> {
  let underWay: Promise<Counts> | null = null
  return () => {
    underWay ??= count().finally(() => {
      underWay = null
    })
    return underWay
  }
}

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

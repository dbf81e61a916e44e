import type { HoldReason, Signup } from '../signup/contact.ts'
import { activate, type SignupTargets } from '../store/activate.ts'
import { type Changed, changeContacts } from '../store/bulk.ts'
import type { ContactFilter } from '../store/contacts.ts'
import type { Database, Tx } from '../store/database.ts'
import { mailboxOf } from '../store/mailbox.ts'
import type { Entry, HoldReasons } from '../store/signups.ts'
import { type HoldRules, hasLink } from './rules.ts'

/**
 * Why new signups are held, each with those before it in the batch; the worst reason counts. Batches that are stored at the same
 * time, which there are on PostgreSQL alone, do not see each other, so a burst passes the limit by all that is in them.
 */
export const decideHolds =
  ({ above, suspicious }: HoldRules): HoldReasons =>
  async (tx, entries) => {
    const mailboxes = suspicious ? await knownMailboxes(tx, entries) : new Set<string>()
    let left = above === null ? Number.POSITIVE_INFINITY : above.count - (await countRecent(tx, above))
    const reasonFor = (signup: Signup, mailbox: string | null): HoldReason | null => {
      if (suspicious && hasLink(signup)) return 'link-in-name'
      if (mailbox !== null && mailboxes.has(mailbox)) return 'same-mailbox'
      if (signup.unverified) return 'unverified'
      return left > 0 ? null : 'above-limit'
    }
    return entries.map(({ key, signup }) => {
      const mailbox = suspicious ? mailboxOf(key) : null
      const reason = reasonFor(signup, mailbox)
      if (mailbox !== null) mailboxes.add(mailbox)
      if (reason === null) left--
      return reason
    })
  }

async function knownMailboxes(tx: Tx, entries: readonly Entry[]): Promise<Set<string>> {
  const wanted = entries.flatMap(({ key }) => mailboxOf(key) ?? [])
  if (wanted.length === 0) return new Set()
  const rows = await tx.all<{ mailbox: string }>(
    `select distinct mailbox from contact where ${tx.dialect.among('mailbox', '$1')}`,
    [wanted],
  )
  return new Set(rows.map(({ mailbox }) => mailbox))
}

/** Counts those who were let in lately, up to the limit. */
async function countRecent(tx: Tx, { count, time }: NonNullable<HoldRules['above']>): Promise<number> {
  const [row] = await tx.all<{ count: number }>(
    "select count(*) as count from (select 1 from contact where created_at > $1 and state <> 'held' limit $2) as recent",
    [tx.now - time, count],
  )
  return row!.count
}

/** Which of those who are held. */
export type HeldFilter = Pick<ContactFilter, 'addresses' | 'reason' | 'search' | 'since' | 'until' | 'source'>

/**
 * Stores held contacts as new signups are stored now, in the order in which they signed up: with a provider they are pending
 * then, without one listed, with their events and deliveries.
 */
export const release = (database: Database, filter: HeldFilter, targets: SignupTargets): Promise<Changed> =>
  changeContacts(database, { ...filter, state: 'held' }, async (tx, numbers) => {
    database.requireRoom()
    return (await activate(tx, 'held', numbers, targets)).length
  })

/** Deletes held contacts. Nobody counts as erased, so the same addresses may sign up again. */
export const discard = (database: Database, filter: HeldFilter): Promise<Changed> =>
  changeContacts(database, { ...filter, state: 'held' }, (tx, numbers) =>
    tx.run(`delete from contact where ${tx.dialect.among('number', '$1')} and state = 'held'`, [numbers]),
  )

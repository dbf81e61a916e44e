import type { HoldReason } from '../signup/contact.ts'
import { activate, type SignupTargets } from '../store/activate.ts'
import { type Changed, changeContacts } from '../store/bulk.ts'
import { type ContactFilter, conditionsOf } from '../store/contacts.ts'
import type { Database, Tx } from '../store/database.ts'
import { mailboxOf } from '../store/mailbox.ts'
import type { Entry, HoldReasons } from '../store/signups.ts'
import { candidateOf, type HoldRules, holdReasonOf } from './rules.ts'

/**
 * Why new signups are held, each with those before it in the batch. Batches that are stored at the same moment, which there are
 * on PostgreSQL alone, do not see each other, so a burst passes the limit by all that is in them.
 */
export const holdReasons =
  (rules: HoldRules): HoldReasons =>
  async (tx, entries) => {
    const { above, suspicious } = rules
    const mailboxes = suspicious ? await knownMailboxes(tx, entries) : new Set<string>()
    let recent = above === null ? 0 : await countRecent(tx, tx.now - above.time, above.count)
    return entries.map(({ signup }) => {
      const candidate = candidateOf(signup, rules)
      const reason = holdReasonOf(candidate, {
        mailboxExists: mailbox => mailboxes.has(mailbox),
        underLimit: () => above === null || recent < above.count,
      })
      if (candidate.mailbox !== null) mailboxes.add(candidate.mailbox)
      if (reason === null) recent++
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

/** Counts those who were let in since then, up to a limit. */
async function countRecent(tx: Tx, since: number, limit: number): Promise<number> {
  const [row] = await tx.all<{ count: number }>(
    "select count(*) as count from (select 1 from contact where created_at > $1 and state <> 'held' limit $2) as recent",
    [since, limit],
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

interface HeldCounts {
  readonly total: number
  /** When the first of them signed up; null: there is none. */
  readonly since: Date | null
  /** The largest first. */
  readonly reasons: readonly { readonly reason: HoldReason; readonly count: number }[]
}

export async function countHeld(tx: Tx, filter: HeldFilter): Promise<HeldCounts> {
  const { where, values } = conditionsOf({ ...filter, state: 'held' }, tx.dialect)
  const reasons = await tx.all<{ reason: HoldReason; count: number; since: number }>(
    `select reason, count(*) as count, min(created_at) as since from contact ${where} group by 1 order by 2 desc, 1`,
    values,
  )
  return {
    total: reasons.reduce((sum, { count }) => sum + count, 0),
    since: reasons.length === 0 ? null : new Date(Math.min(...reasons.map(({ since }) => since))),
    reasons: reasons.map(({ reason, count }) => ({ reason, count })),
  }
}

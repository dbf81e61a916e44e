import type { Counts } from '../waitlist/alerts/counts.ts'
import type { Confirmations } from '../waitlist/ports/confirmations.ts'
import type { Invitations } from '../waitlist/ports/invitations.ts'
import type { Upkeep } from '../waitlist/ports/upkeep.ts'
import type { Announcement } from './operator/announcement.ts'
import { confirm, expire } from './operator/confirmations.ts'
import { countAll, countListed } from './operator/counts.ts'
import { leave } from './operator/erasure.ts'
import { invitationOf, redeem } from './operator/invitations.ts'
import { sharedSecret } from './secret.ts'
import type { Sql } from './sql.ts'

/** Milliseconds that a server has for each statement that counts everything. */
const COUNTING = 10_000

/** What both engines do in the same way. */
type Shared = Omit<Upkeep, 'acquireInterval'> & Invitations & Confirmations

/** What the running service asks beside signups and deliveries. `now`: null for the server's clock. */
export const upkeepOn = (sql: Sql, announcement: Announcement, now: () => Date | null): Shared => ({
  prune: (age, most) => prune(sql, age, most, now()),
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

/** Deletes deliveries that were delivered long ago. `now`: null for the server's clock. As `Upkeep.prune`. */
async function prune(sql: Sql, age: number, most: number, now: Date | null): Promise<number> {
  const { after, among, unlocked } = sql.dialect
  const before = after(`coalesce(cast($1 as timestamptz), ${sql.dialect.now})`, 'cast($2 as double precision)')
  const old =
    `select number from delivery where state = 'delivered' and settled_at < ${before}` +
    ` order by settled_at limit $3 ${unlocked}`
  return (await sql.all(`delete from delivery where ${among('number', old)} returning 1`, [now, -age, most])).length
}

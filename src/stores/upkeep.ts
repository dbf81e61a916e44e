import type { Counts } from '../waitlist/alerts/counts.ts'
import type { Upkeep } from '../waitlist/ports/upkeep.ts'
import { countAll, countListed } from './operator/counts.ts'
import { fillMailboxes } from './operator/mailboxes.ts'
import { pruneStep } from './operator/pruning.ts'
import { sharedSecret } from './secret.ts'
import type { Sql } from './sql.ts'

/** Milliseconds that a server has for each statement that counts everything. */
const COUNTING = 10_000

/** What both engines do in the same way. */
type Shared = Omit<Upkeep, 'acquireInterval'>

/** What the running service asks beside signups and deliveries. `now`: null for the server's clock. */
export const upkeepOn = (sql: Sql, now: () => Date | null): Shared => ({
  prune: (age, after, most, counting) => pruneStep(sql, { now: now(), age, after, most, counting, byHand: false }),
  fillMailboxes: (after, most) => fillMailboxes(sql, after, most),
  secret: name => sharedSecret(sql, name),
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

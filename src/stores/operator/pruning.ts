import type { Pruned } from '../../waitlist/ports/upkeep.ts'
import { type Engine, inSteps, lend, type Progress, type Sql } from '../sql.ts'

export const pruning = (engine: Engine) => ({
  /**
   * Deletes the deliveries of events that ended before then. It goes in short steps, so that signups do not wait, and what
   * was done stays done if it is stopped.
   */
  prune: (before: Date, progress?: Progress) => lend(engine, 'writing', sql => prune(sql, before, progress)),
})

async function prune(sql: Sql, before: Date, progress: Progress = () => {}) {
  const [all] = await sql.all<{ total: number }>('select count(*) as total from delivery')
  const sums = { deleted: 0, abandoned: 0 }
  let [done, after] = [0, 0]
  await inSteps(async most => {
    const step = { now: before, age: 0, after, most, byHand: true }
    const { deleted, abandoned, last, looked } = await pruneStep(sql, step)
    sums.deleted += deleted
    sums.abandoned += abandoned
    done += looked
    progress(done, all!.total)
    after = last ?? after
    return last !== null
  })
  return sums
}

interface PruneStep {
  /** Null: the server's clock is used. */
  readonly now: Date | null
  /** Milliseconds since which they have ended. */
  readonly age: number
  /** The number after which it looks, and at how many. */
  readonly after: number
  readonly most: number
  readonly counting?: boolean | undefined
  /** Whether the operator asked for it. What was abandoned is the operator's to replay, so it goes only then. */
  readonly byHand: boolean
}

/**
 * Looks at the next deliveries, and deletes, or only counts, those that have ended: not the hand-over of somebody who is
 * pending, nor the mail to somebody who is unconfirmed, which are not at their end even if they were abandoned. If the answer
 * is lost and it is tried again, what was deleted before is not counted.
 */
export async function pruneStep(
  sql: Sql,
  { now, age, after, most, counting = false, byHand }: PruneStep,
): Promise<Pruned> {
  const time = `coalesce(cast($1 as timestamptz), ${sql.dialect.now})`
  const hasEnded =
    `delivery.state ${byHand ? "<> 'waiting'" : "= 'delivered'"}` +
    ` and settled_at < ${sql.dialect.after(time, 'cast($2 as double precision)')}` +
    // A subquery that is looked up for each of them: PostgreSQL reads all contacts for "not exists".
    " and coalesce((select contact.state from contact where contact.number = delivery.contact), '')" +
    " not in ('pending', 'unconfirmed')"
  // Apart from the change, since it needs no lock.
  const page = await sql.all<{ number: number; ended: boolean | number | null }>(
    `select number, ${hasEnded} as ended from delivery where number > $3 order by number limit $4`,
    [now, -age, after, most],
  )
  const last = page.at(-1)?.number ?? after
  const ended = page.filter(row => row.ended).length
  const gone =
    ended === 0 || counting
      ? []
      : await sql.all<{ state: string }>(
          `delete from delivery where number > $3 and number <= $4 and ${hasEnded} returning state`,
          [now, -age, after, last],
        )
  return {
    looked: page.length,
    deleted: counting ? ended : gone.length,
    abandoned: gone.filter(({ state }) => state === 'abandoned').length,
    last: page.length < most ? null : last,
  }
}

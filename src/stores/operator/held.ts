import type { HoldReason } from '../../waitlist/rules/contact.ts'
import { type Engine, lend, type Sql } from '../sql.ts'
import { type Announcement, goOn } from './announcement.ts'
import { conditionsOf } from './contacts.ts'
import { type Candidates, type Course, decide, stillIn } from './decide.ts'

/** Which of those who are held. */
export type HeldFilter = Pick<Candidates, 'addresses' | 'reason' | 'domain' | 'search' | 'until'>

export interface HeldCounts {
  readonly total: number
  /** When the first of them signed up; null: there is none. */
  readonly since: Date | null
  /** The largest first. */
  readonly reasons: readonly { readonly reason: HoldReason; readonly count: number }[]
  /** The largest first, `HELD_DOMAINS` at most. In lower case. */
  readonly domains: readonly { readonly domain: string; readonly count: number }[]
  /** Hours of signups, without those that are empty, in ascending order: the last `HELD_HOURS` at most. */
  readonly hours: readonly { readonly from: Date; readonly count: number }[]
}

const HELD_DOMAINS = 20
const HELD_HOURS = 48

const ofHeld = { state: 'held', advice: 'Run it again: it goes on.' } as const

/** What becomes of held contacts. */
export const holding = (engine: Engine) => ({
  /** Counts them, of one moment. */
  countHeld: (which: HeldFilter) => lend(engine, 'reading', sql => sql.snapshot(sql => countHeld(sql, which))),
  /**
   * Stores them as new signups are stored now, in the order in which they signed up. With a provider they are pending then,
   * and handed over in that order at its pace; without one they are listed, with their events and deliveries.
   */
  release: (which: HeldFilter, announcement: Announcement, course: Course) =>
    lend(engine, 'writing', sql =>
      decide(engine, sql, which, course, {
        ...ofHeld,
        look: engine.requireRoom,
        change: (sql, numbers) => goOn(sql, 'held', numbers, announcement),
      }),
    ),
  /** Deletes them. Nobody counts as erased, so the same addresses may sign up again. */
  discard: (which: HeldFilter, course: Course) =>
    lend(engine, 'writing', sql => decide(engine, sql, which, course, { ...ofHeld, look: () => {}, change: discard })),
})

async function countHeld(sql: Sql, which: HeldFilter): Promise<HeldCounts> {
  const { domain, hour } = sql.dialect
  const { where, values } = conditionsOf({ ...which, state: 'held' }, sql.dialect)
  const reasons = await sql.all<{ reason: HoldReason; count: number; since: number }>(
    `select reason, count(*) as count, min(created_at) as since from contact ${where} group by 1 order by 2 desc, 1`,
    values,
  )
  const domains = await sql.all<{ domain: string; count: number }>(
    `select ${domain('email_key')} as domain, count(*) as count from contact ${where}` +
      ` group by 1 order by 2 desc, 1 limit ${HELD_DOMAINS}`,
    values,
  )
  const hours = await sql.all<{ from: number; count: number }>(
    `select ${hour('created_at')} as "from", count(*) as count from contact ${where}` +
      ` group by 1 order by 1 desc limit ${HELD_HOURS}`,
    values,
  )
  return {
    total: reasons.reduce((sum, { count }) => sum + count, 0),
    since: reasons.length === 0 ? null : new Date(Math.min(...reasons.map(({ since }) => since))),
    reasons: reasons.map(({ reason, count }) => ({ reason, count })),
    domains: domains.map(({ domain, count }) => ({ domain, count })),
    hours: hours.map(({ from, count }) => ({ from: new Date(from), count })).reverse(),
  }
}

async function discard(sql: Sql, numbers: string): Promise<number> {
  const text = `delete from contact where ${sql.dialect.among('number', stillIn('held', sql))} returning 1`
  return (await sql.all(text, [numbers])).length
}

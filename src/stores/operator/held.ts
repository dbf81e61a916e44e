import type { HoldReason } from '../../waitlist/rules/contact.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import { IN_PLACE } from '../rows.ts'
import { type Engine, inSteps, lend, once, type Progress, type Sql } from '../sql.ts'
import { type ContactFilter, conditionsOf, type Which } from './contacts.ts'
import { type Announcement, initialState } from './imports.ts'

/** Which of them: those for which all of it holds. */
export interface HeldFilter extends Pick<ContactFilter, 'reason' | 'domain' | 'search' | 'until'> {
  readonly addresses?: readonly string[] | undefined
}

/**
 * How a change of many goes: in short steps, so that signups do not wait. Those that are held later than it began stay so.
 * What was done stays done if it is stopped, and the rest is still held.
 */
export interface Course {
  readonly progress: Progress
  /** Ends it between two steps. */
  readonly signal: AbortSignal
}

export interface Decided {
  /** Contacts that were released or discarded. */
  readonly done: number
  /** Of the given addresses those that were not held. */
  readonly missing: readonly string[]
}

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

/** What becomes of held contacts. */
export const holding = (engine: Engine) => ({
  /** Counts them, of one moment. */
  countHeld: (which: HeldFilter) => lend(engine, 'reading', sql => sql.snapshot(sql => countHeld(sql, which))),
  /**
   * Stores them as new signups are stored now, in the order in which they signed up. With a provider they are pending then,
   * and handed over in that order at its pace; without one they are listed, with their events and deliveries.
   */
  release: (which: HeldFilter, announcement: Announcement, course: Course) =>
    lend(engine, 'writing', sql => {
      const change = (sql: Sql, numbers: string) => release(sql, numbers, announcement)
      return decide(engine, sql, which, course, change, engine.requireRoom)
    }),
  /** Deletes them. Nobody counts as erased, so the same addresses may sign up again. */
  discard: (which: HeldFilter, course: Course) =>
    lend(engine, 'writing', sql => decide(engine, sql, which, course, discard, () => {})),
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

/** Of the numbers in $1. What another operator has just released or discarded is not held any more, and left out. */
const stillHeld = ({ dialect: { among, elements, forUpdate } }: Sql): string =>
  `select number from contact where ${among('number', elements('$1', 'whole'))} and state = 'held' order by number ${forUpdate}`

/** Stores them like new signups. Deliveries are rows of their own, so nothing is lost if one is there. */
async function release(sql: Sql, numbers: string, announcement: Announcement): Promise<number> {
  const { now, inOrder, among, elements } = sql.dialect
  const { state, eventName, destinations } = initialState({ state: 'listed' }, announcement)
  const released = await sql.all<{ number: number }>(
    `update contact set state = $2, reason = null, event_name = $3,` +
      ` event_at = case when cast($3 as text) is not null then ${now} end` +
      ` where ${among('number', stillHeld(sql))} returning number`,
    [numbers, state, eventName],
  )
  if (released.length === 0) return 0
  await sql.all(
    `insert into delivery (contact, destination, due_at)` +
      ` select number, destination.value, ${inOrder(now, 'row_number() over (order by number)')}` +
      ` from contact cross join (${elements('$2', 'text')}) as destination` +
      ` where ${among('number', elements('$1', 'whole'))} order by number ${IN_PLACE}`,
    [JSON.stringify(released.map(({ number }) => number)), JSON.stringify(destinations)],
  )
  return released.length
}

async function discard(sql: Sql, numbers: string): Promise<number> {
  const text = `delete from contact where ${sql.dialect.among('number', stillHeld(sql))} returning 1`
  return (await sql.all(text, [numbers])).length
}

/** By ascending number, so it ends also where what was released is held again. `look` is called before each step. */
async function decide(
  engine: Engine,
  sql: Sql,
  which: HeldFilter,
  { progress, signal }: Course,
  change: (sql: Sql, numbers: string) => Promise<number>,
  look: () => void,
): Promise<Decided> {
  const held = <Row>(what: string, limits: Pick<Which, 'above' | 'upTo'> = {}, most?: number) => {
    const { where, values } = conditionsOf({ ...which, state: 'held', ...limits }, sql.dialect)
    const page = most === undefined ? '' : ` order by number limit $${values.length + 1}`
    return sql.all<Row>(`select ${what} from contact ${where}${page}`, most === undefined ? values : [...values, most])
  }
  const [all] = await held<{ total: number; last: number | null }>('count(*) as total, max(number) as last')
  const keys = which.addresses && new Set((await held<{ email_key: string }>('email_key')).map(row => row.email_key))
  const missing = which.addresses?.filter(address => !keys?.has(emailKey(address))) ?? []
  let [looked, done, above] = [0, 0, 0]
  await inSteps(async rows => {
    if (signal.aborted) return false
    const most = Math.min(rows, engine.pace.most)
    // Apart from the change, since it needs no lock.
    const page = await held<{ number: number }>('number', { above, upTo: all!.last ?? 0 }, most)
    if (page.length === 0) return false
    look()
    const numbers = JSON.stringify(page.map(({ number }) => number))
    done += await once(sql, 'Run it again: it goes on.', sql => change(sql, numbers))
    above = page.at(-1)!.number
    looked += page.length
    progress(looked, all!.total)
    return page.length === most
  })
  return { done, missing }
}

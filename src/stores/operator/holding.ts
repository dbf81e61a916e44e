import type { HoldReason } from '../../waitlist/rules/contact.ts'
import { inSteps } from '../steps.ts'
import type { ContactFilter } from './contacts.ts'
import type { Announcement } from './imports.ts'

/** What becomes of held contacts. */
export interface Holding {
  /** Counts them, of one moment. */
  countHeld(which: HeldFilter): Promise<HeldCounts>
  /**
   * Stores them as new signups are stored now, in the order in which they signed up. With a provider they are pending then,
   * and handed over in that order at its pace; without one they are listed, with their events and deliveries.
   */
  release(which: HeldFilter, announcement: Announcement, course: Course): Promise<Decided>
  /** Deletes them. Nobody counts as erased, so the same addresses may sign up again. */
  discard(which: HeldFilter, course: Course): Promise<Decided>
}

/** Which of them: those for which all of it holds. */
export interface HeldFilter extends Pick<ContactFilter, 'heldFor' | 'domain' | 'search' | 'until'> {
  readonly addresses?: readonly string[] | undefined
}

/**
 * How a change of many goes: in short steps, so that signups do not wait. Those that are held later than it began stay so.
 * What was done stays done if it is stopped, and the rest is still held.
 */
export interface Course {
  /** Called after each step. `done`: those that were looked at so far; `total`: those that were held when it began. */
  readonly progress: (done: number, total: number) => void
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

export const HELD_DOMAINS = 20
export const HELD_HOURS = 48

/** Numbers are text where PostgreSQL returns them so, and times are in the engine's form. */
export interface HeldRows {
  readonly reasons: readonly { reason: HoldReason; count: number | string; since: number | Date }[]
  readonly domains: readonly { domain: string; count: number | string }[]
  /** The last one first. */
  readonly hours: readonly { from: number | Date; count: number | string }[]
}

/** What is asked for a count. `where` selects contacts; `domain` and `hour` are made of their columns. */
export const heldStatements = (
  where: string,
  { domain, hour }: { readonly domain: string; readonly hour: string },
) => ({
  reasons: `select held_for as reason, count(*) as count, min(created_at) as since from contact ${where} group by 1 order by 2 desc, 1`,
  domains: `select ${domain} as domain, count(*) as count from contact ${where} group by 1 order by 2 desc, 1 limit ${HELD_DOMAINS}`,
  hours: `select ${hour} as "from", count(*) as count from contact ${where} group by 1 order by 1 desc limit ${HELD_HOURS}`,
})

export function heldCounts({ reasons, domains, hours }: HeldRows): HeldCounts {
  const first = reasons.map(({ since }) => new Date(since).getTime())
  return {
    total: reasons.reduce((sum, { count }) => sum + Number(count), 0),
    since: first.length === 0 ? null : new Date(Math.min(...first)),
    reasons: reasons.map(({ reason, count }) => ({ reason, count: Number(count) })),
    domains: domains.map(({ domain, count }) => ({ domain, count: Number(count) })),
    hours: hours.map(({ from, count }) => ({ from: new Date(from), count: Number(count) })).reverse(),
  }
}

/** Changes up to `most` of those with numbers above `after`. `last`: the number of the last one it looked at; null: there was none. */
export type Step = (
  after: number,
  most: number,
) => Promised<{ readonly looked: number; readonly done: number; readonly last: number | null }>
type Promised<T> = T | Promise<T>

/** By ascending number, so it ends also where what was released is held again. Resolves with how many were changed. `limit`: rows of a step. */
export async function throughAll(
  step: Step,
  { total, limit }: { readonly total: number; readonly limit: number },
  { progress, signal }: Course,
): Promise<number> {
  let [looked, done, after] = [0, 0, 0]
  await inSteps(async rows => {
    const most = Math.min(rows, limit)
    if (signal.aborted) return false
    const page = await step(after, most)
    if (page.last === null) return false
    after = page.last
    done += page.done
    looked += page.looked
    progress(looked, total)
    return page.looked === most
  })
  return done
}

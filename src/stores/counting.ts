import { type Counts, type DeliveryCount, MINUTE, QUARTER, type Span } from '../waitlist/alerts/counts.ts'
import type { HoldReason } from '../waitlist/rules/contact.ts'

/** What both engines share of counting everything (`Counts`). */

/** How far back signups are counted by the minute, and before that by the quarter of an hour. */
const MINUTES_OF = 120 * MINUTE
const QUARTERS_OF = 32 * 24 * 60 * MINUTE

/** Destinations that are counted, those of the most deliveries. There are more only if somebody wrote them by hand. */
export const DESTINATIONS = 50

/** The latest waiting deliveries of a destination that are asked how an attempt ended: most may have had none yet. */
export const ASKED_WHY = 1_000

/** Code points of what was written by hand. */
export const LONGEST_TEXT = 500

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

/** Milliseconds since 1970. */
export interface Reach {
  readonly since: number
  /** From then on each minute is counted for itself. */
  readonly minutes: number
  /** A minute ahead, since the clocks of two instances may be a little apart. */
  readonly until: number
}

export function reachAt(now: number): Reach {
  const quarter = (time: number) => Math.floor(time / QUARTER) * QUARTER
  const minutes = quarter(now - MINUTES_OF)
  return { since: minutes - QUARTERS_OF, minutes, until: now + MINUTE }
}

/** Numbers are text where PostgreSQL returns them so, and times are in the engine's form. */
export interface Counted {
  readonly total: number | string
  readonly pending: number | string
  readonly held: readonly HeldRow[]
  /** `minute`: the first one of the span, in minutes since 1970. In ascending order. */
  readonly spans: readonly { readonly minute: number; readonly count: number | string }[]
  readonly sources: readonly {
    readonly source: string
    readonly count: number | string
    readonly sourced: number | string
  }[]
  readonly deliveries: readonly DestinationRow[]
}

export interface HeldRow {
  readonly reason: HoldReason
  readonly count: number | string
  readonly oldest: number | Date
  readonly newest: number | Date
}

/** Where nobody is held it costs nothing. */
export const HELD =
  'select held_for as reason, count(*) as count, min(created_at) as oldest, max(created_at) as newest' +
  " from contact where state = 'held' group by held_for order by 2 desc, 1"

export interface DestinationRow {
  readonly destination: string
  readonly total: number | string
  readonly waiting: number | string
  readonly abandoned: number | string
  readonly oldest: number | Date | null
  readonly waiting_why: string | null
  readonly abandoned_why: string | null
}

export function countsOf(now: number, { minutes }: Reach, counted: Counted): Counts {
  const pending = Number(counted.pending)
  const held = counted.held.reduce((sum, { count }) => sum + Number(count), 0)
  return {
    at: new Date(now),
    contacts: { pending, held, listed: Number(counted.total) - pending - held },
    held: counted.held.map(({ reason, count, oldest, newest }) => ({
      reason,
      count: Number(count),
      oldest: new Date(oldest),
      newest: new Date(newest),
    })),
    signups: counted.spans.map(({ minute, count }): Span => {
      const from = minute * MINUTE
      return { from: new Date(from), length: from < minutes ? QUARTER : MINUTE, count: Number(count) }
    }),
    sources: counted.sources.map(({ source, count }) => ({ source, count: Number(count) })),
    sourced: Number(counted.sources[0]?.sourced ?? 0),
    deliveries: counted.deliveries.flatMap(deliveryCounts),
  }
}

function deliveryCounts({ destination, oldest, ...row }: DestinationRow): DeliveryCount[] {
  const [waiting, abandoned] = [Number(row.waiting), Number(row.abandoned)]
  const delivered = Number(row.total) - waiting - abandoned
  const counts: readonly DeliveryCount[] = [
    {
      destination,
      state: 'waiting',
      count: waiting,
      oldest: oldest === null ? null : new Date(oldest),
      why: row.waiting_why,
    },
    { destination, state: 'delivered', count: delivered, oldest: null, why: null },
    { destination, state: 'abandoned', count: abandoned, oldest: null, why: row.abandoned_why },
  ]
  return counts.filter(({ count }) => count > 0)
}

import { type Counts, type DeliveryCount, MINUTE, QUARTER, SOURCES } from '../../waitlist/alerts/counts.ts'
import type { HoldReason } from '../../waitlist/rules/contact.ts'
import { EVENT_AT, SOURCE_LABEL } from '../rows.ts'
import type { Dialect, Sql } from '../sql.ts'

/** One statement, so that it is of one moment. Where most are listed, an index counts them faster than a look at each. */
const LISTED =
  "select (select count(*) from contact) - (select count(*) from contact where state = 'pending')" +
  " - (select count(*) from contact where state = 'held')" +
  " - (select count(*) from contact where state = 'unconfirmed') as listed"

export async function countListed(sql: Sql): Promise<number> {
  const [row] = await sql.all<{ listed: number }>(LISTED)
  return row!.listed
}

/** How far back signups are counted by the minute, and before that by the quarter of an hour. */
const MINUTES_OF = 120 * MINUTE
const QUARTERS_OF = 32 * 24 * 60 * MINUTE

/** The latest waiting deliveries of a destination that are asked how an attempt ended: most may have had none yet. */
const ASKED_WHY = 1_000

/** Milliseconds since 1970. */
interface Reach {
  readonly since: number
  /** From then on each minute is counted for itself. */
  readonly minutes: number
  /** A minute ahead, since the clocks of two instances may be a little apart. */
  readonly until: number
}

function reachAt(now: number): Reach {
  const quarter = (time: number) => Math.floor(time / QUARTER) * QUARTER
  const minutes = quarter(now - MINUTES_OF)
  return { since: minutes - QUARTERS_OF, minutes, until: now + MINUTE }
}

const TOTALS =
  "select (select count(*) from contact) as total, (select count(*) from contact where state = 'pending') as pending," +
  " (select count(*) from contact where state = 'unconfirmed') as unconfirmed," +
  ' (select count(*) from contact where code is not null) as invited,' +
  ' (select count(*) from contact where redeemed_at is not null) as redeemed'

/** Those from $1 to $3, by the minute from $2 on. */
const spans = ({ spanOf, fenced }: Dialect) => `
select minute, count(*) as count from (
  select case when created_at < $2 then ${spanOf('created_at', QUARTER / MINUTE)} else ${spanOf('created_at', 1)} end as minute
  from contact where created_at >= $1 and created_at < $3 and state not in ('held', 'unconfirmed') ${fenced}
) as each group by minute order by minute`

/** Where nobody is held it costs nothing. */
const HELD =
  'select reason, count(*) as count, min(created_at) as oldest, max(created_at) as newest' +
  " from contact where state = 'held' group by reason order by 2 desc, 1"

/** Grouped before a label is read, which takes longer than to group. */
const sources = ({ json }: Dialect) => `
with written as (
  select cast(source as text) as source, count(*) as count from contact
  where source is not null and state not in ('held', 'unconfirmed') group by 1
), labelled as (
  select ${SOURCE_LABEL} as label, sum(count) as count
  from (select ${json('source')} as source, count from written) as contact group by 1
)
select label as source, count, sum(count) over () as sourced from labelled where label is not null
order by count desc, label limit ${SOURCES}`

/** The oldest one that waits is the one with the smallest number. */
const DELIVERIES = `
with busiest as (
  select destination, count(*) as total,
    count(*) filter (where state = 'waiting') as waiting, min(number) filter (where state = 'waiting') as first,
    count(*) filter (where state = 'abandoned') as abandoned, max(number) filter (where state = 'abandoned') as last
  from delivery group by destination
)
select destination, total, waiting, abandoned,
  (select coalesce(${EVENT_AT}, created_at) from delivery join contact on contact.number = delivery.contact
    where delivery.number = first) as oldest,
  (select why from (
    select why, due_at from delivery where state = 'waiting' and destination = busiest.destination
    order by due_at desc limit ${ASKED_WHY}
  ) as latest where why is not null order by due_at desc limit 1) as waiting_why,
  (select why from delivery where number = last) as abandoned_why
from busiest order by total desc, destination`

interface DestinationRow {
  readonly destination: string
  readonly total: number
  readonly waiting: number
  readonly abandoned: number
  readonly oldest: number | null
  readonly waiting_why: string | null
  readonly abandoned_why: string | null
}

/** Counts everything, within a snapshot. `clock`: null for that of the server or the machine. */
export async function countAll(sql: Sql, clock: Date | null): Promise<Counts> {
  const { dialect } = sql
  const [moment] = await sql.all<{ now: number }>(`select coalesce(cast($1 as timestamptz), ${dialect.now}) as now`, [
    clock,
  ])
  const { now } = moment!
  const { since, minutes, until } = reachAt(now)
  const reach = [since, minutes, until].map(time => new Date(time))
  const [totals] = await sql.all<Record<'total' | 'unconfirmed' | 'pending' | 'invited' | 'redeemed', number>>(TOTALS)
  const { total, unconfirmed, pending, invited, redeemed } = totals!
  const signups = await sql.all<{ minute: number; count: number }>(spans(dialect), reach)
  const reasons = await sql.all<{ reason: HoldReason; count: number; oldest: number; newest: number }>(HELD)
  const labels = await sql.all<{ source: string; count: number; sourced: number }>(sources(dialect))
  const destinations = await sql.all<DestinationRow>(DELIVERIES)
  const held = reasons.reduce((sum, { count }) => sum + count, 0)
  return {
    at: new Date(now),
    contacts: { unconfirmed, pending, held, listed: total - unconfirmed - pending - held - invited, invited },
    redeemed,
    held: reasons.map(({ reason, count, oldest, newest }) => ({
      reason,
      count,
      oldest: new Date(oldest),
      newest: new Date(newest),
    })),
    signups: signups.map(({ minute, count }) => ({ from: new Date(minute * MINUTE), count })),
    sources: labels.map(({ source, count }) => ({ source, count })),
    sourced: labels[0]?.sourced ?? 0,
    deliveries: destinations.flatMap(deliveryCounts),
  }
}

function deliveryCounts({ destination, total, waiting, abandoned, oldest, ...row }: DestinationRow): DeliveryCount[] {
  const counts: readonly DeliveryCount[] = [
    {
      destination,
      state: 'waiting',
      count: waiting,
      oldest: oldest === null ? null : new Date(oldest),
      why: row.waiting_why,
    },
    { destination, state: 'delivered', count: total - waiting - abandoned, oldest: null, why: null },
    { destination, state: 'abandoned', count: abandoned, oldest: null, why: row.abandoned_why },
  ]
  return counts.filter(({ count }) => count > 0)
}

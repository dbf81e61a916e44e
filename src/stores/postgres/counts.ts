import type pg from 'pg'
import { type Counts, SOURCES } from '../../waitlist/alerts/counts.ts'
import {
  ASKED_WHY,
  type Counted,
  countsOf,
  DESTINATIONS,
  type DestinationRow,
  HELD,
  LONGEST_TEXT,
  reachAt,
} from '../counting.ts'
import { SOURCE_LABEL } from '../deliveries.ts'
import { NOW } from './sql.ts'

/** Compiling a statement takes longer than running it, and so would a wait for a lock. */
const begin = (timeout: number) =>
  'begin isolation level repeatable read read only; set local jit = off;' +
  ` set local statement_timeout = ${timeout}; set local lock_timeout = ${Math.min(2_000, timeout)}`

/**
 * All contacts in one pass; those outside the reach have no minute. `date_part` is a fast floating-point number, which
 * minutes are exact in. With an offset, the planner does not take the minutes for as many as there are contacts, for which
 * it would not count in parallel; nor would it with a 0 that is yet to be made a bigint, so that one is in quotes.
 */
const CONTACTS = `
select minute, count(*) as count, count(*) filter (where state = 'pending') as pending,
  count(*) filter (where state = 'held') as held from (
  select state, case when created_at < $1 or created_at >= $3 then null
    when created_at < $2 then floor(date_part('epoch', created_at) / 900) * 15
    else floor(date_part('epoch', created_at) / 60) end as minute
  from contact offset '0'
) as each group by minute order by minute`

/** Grouped before a label is read, which takes longer than to group. */
const SOURCES_OF = `
with written as (
  select source::text as source, count(*) as count from contact where source is not null and state <> 'held' group by 1
), labelled as (
  select left(${SOURCE_LABEL}, ${LONGEST_TEXT}) as source, sum(count) as count
  from (select source::json as source, count from written) as contact group by 1
)
select source, count, sum(count) over () as sourced from labelled where source is not null
order by count desc, source limit ${SOURCES}`

/** The oldest one that waits is the one with the smallest number. */
const DELIVERIES = `
with busiest as (
  select destination, count(*) as total,
    count(*) filter (where state = 'waiting') as waiting, min(number) filter (where state = 'waiting') as first,
    count(*) filter (where state = 'abandoned') as abandoned, max(number) filter (where state = 'abandoned') as last
  from delivery group by destination order by total desc, destination limit ${DESTINATIONS}
)
select left(destination, ${LONGEST_TEXT}) as destination, total, waiting, abandoned,
  (select coalesce(event_at, created_at) from contact where number = (select contact from delivery where number = first)) as oldest,
  (select left(why, ${LONGEST_TEXT}) from (
    select why, due_at from delivery where state = 'waiting' and destination = busiest.destination
    order by due_at desc limit ${ASKED_WHY}
  ) as latest where why is not null order by due_at desc limit 1) as waiting_why,
  (select left(why, ${LONGEST_TEXT}) from delivery where number = last) as abandoned_why
from busiest order by total desc, destination`

/**
 * Counts everything as of one moment. `clock`: null for the server's. `timeout`: milliseconds for each
 * statement, of which there are a few.
 */
export async function countAll(client: pg.ClientBase, clock: Date | null, timeout: number): Promise<Counts> {
  const rows = async <Row>(text: string, values: readonly unknown[] = []) =>
    (await client.query({ text, values: [...values], query_timeout: timeout } as pg.QueryConfig)).rows as Row[]
  await client.query(begin(timeout))
  const [moment] = await rows<{ now: Date }>(`select ${NOW} as now`, [clock])
  const now = moment!.now.getTime()
  const reach = reachAt(now)
  const times = [reach.since, reach.minutes, reach.until].map(time => new Date(time))
  const contacts = await rows<{ minute: number | null; count: string; pending: string; held: string }>(CONTACTS, times)
  const sum = (column: 'count' | 'pending') => contacts.reduce((total, row) => total + Number(row[column]), 0)
  const counted: Counted = {
    total: sum('count'),
    pending: sum('pending'),
    held: await rows(HELD),
    spans: contacts.flatMap(({ minute, count, held }) => {
      const onTheList = Number(count) - Number(held)
      return minute === null || onTheList === 0 ? [] : { minute, count: onTheList }
    }),
    sources: await rows(SOURCES_OF),
    deliveries: await rows<DestinationRow>(DELIVERIES),
  }
  await client.query('commit')
  return countsOf(now, reach, counted)
}

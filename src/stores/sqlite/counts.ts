import type { DatabaseSync } from 'node:sqlite'
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

const CONTACTS =
  "select (select count(*) from contact) as total, (select count(*) from contact where state = 'pending') as pending"

const SPANS =
  'select case when created_at < :minutes then created_at / 900000 * 15 else created_at / 60000 end as minute,' +
  ' count(*) as count from contact where created_at >= :since and created_at < :until' +
  " and state <> 'held' group by 1 order by 1"

/** Grouped before a label is read, which takes longer than to group. */
const SOURCES_OF = `
with written as (
  select source, count(*) as count from contact where source is not null and state <> 'held' group by source
), labelled as materialized (
  select substr(${SOURCE_LABEL}, 1, ${LONGEST_TEXT}) as label, sum(count) as count from written as contact
  where ${SOURCE_LABEL} is not null group by label
)
select label as source, count, (select sum(count) from labelled) as sourced from labelled
order by count desc, source limit ${SOURCES}`

/** The oldest one that waits is the one with the smallest number, which the index has. */
const DELIVERIES = `
with busiest as (
  select destination, count(*) as total from delivery group by destination
  order by total desc, destination limit ${DESTINATIONS}
), abandoned as (
  select destination, count(*) as count, max(number) as last from delivery where state = 'abandoned' group by destination
), both as (
  select busiest.destination, total, coalesce(abandoned.count, 0) as abandoned, last,
    (select count(*) from delivery where state = 'waiting' and destination = busiest.destination) as waiting,
    (select min(number) from delivery where state = 'waiting' and destination = busiest.destination) as first
  from busiest left join abandoned on abandoned.destination = busiest.destination
)
select substr(destination, 1, ${LONGEST_TEXT}) as destination, total, waiting, abandoned,
  (select coalesce(event_at, created_at) from contact where number = (select contact from delivery where number = first)) as oldest,
  (select substr(why, 1, ${LONGEST_TEXT}) from (
    select why, due_at from delivery where state = 'waiting' and destination = both.destination
    order by due_at desc limit ${ASKED_WHY}
  ) where why is not null order by due_at desc limit 1) as waiting_why,
  (select substr(why, 1, ${LONGEST_TEXT}) from delivery where number = last) as abandoned_why
from both order by total desc, destination`

/** Counts everything, within the caller's transaction. `now`: milliseconds since 1970. */
export function countAll(database: DatabaseSync, now: number): Counts {
  const rows = (text: string, values = {}) => database.prepare(text).all(values)
  const reach = reachAt(now)
  return countsOf(now, reach, {
    ...(rows(CONTACTS)[0] as unknown as Pick<Counted, 'total' | 'pending'>),
    held: rows(HELD) as unknown as Counted['held'],
    spans: rows(SPANS, reach) as unknown as Counted['spans'],
    sources: rows(SOURCES_OF) as unknown as Counted['sources'],
    deliveries: rows(DELIVERIES) as unknown as readonly DestinationRow[],
  })
}

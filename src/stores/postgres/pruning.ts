import type { Pruned } from '../../waitlist/ports.ts'
import { endedBefore } from '../operator/pruning.ts'
import type { Query } from './client.ts'
import { NOW } from './sql.ts'

const BEFORE = `${NOW} - $2::double precision * interval '1 millisecond'`

const PRUNE = `
with page as (
  select number, ${endedBefore(BEFORE)} as ended from delivery where number > $3::bigint order by number limit $4
), gone as (
  delete from delivery where number = any(array(select number from page where ended)) and ${endedBefore(BEFORE)}
  returning state
)
select max(number) as last, count(*)::int as looked, (select count(*)::int from gone) as deleted,
  (select count(*)::int from gone where state = 'abandoned') as abandoned from page`

/**
 * Looks at the next deliveries, and deletes those of events that ended `age` milliseconds before `now`. Null: the server's
 * clock is used. If the answer is lost and it is tried again, what was deleted before is not counted.
 */
export async function pruneStep(
  query: Query,
  { now, age, after, most }: { now: Date | null; age: number; after: number; most: number },
): Promise<Pruned> {
  const [row] = await query<Omit<Pruned, 'last'> & { last: string | null }>(PRUNE, [now, age, after, most])
  const { last, ...counts } = row!
  return { ...counts, last: counts.looked < most ? null : Number(last) }
}

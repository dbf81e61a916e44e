import type { Pruned } from '../../waitlist/ports/upkeep.ts'
import { endedBefore } from '../operator/pruning.ts'
import type { Query } from './client.ts'
import { NOW } from './sql.ts'

const BEFORE = `${NOW} - $2::double precision * interval '1 millisecond'`

const prune = (byHand: boolean) => `
with page as (
  select number, ${endedBefore(BEFORE, byHand)} as ended from delivery where number > $3::bigint order by number limit $4
), gone as (
  delete from delivery where number = any(array(select number from page where ended and not $5::boolean))
    and ${endedBefore(BEFORE, byHand)}
  returning state
)
select max(number) as last, count(*)::int as looked,
  case when $5 then count(*) filter (where ended) else (select count(*) from gone) end::int as deleted,
  (select count(*)::int from gone where state = 'abandoned') as abandoned from page`

/**
 * Looks at the next deliveries, and deletes, or only counts, those that ended `age` milliseconds before `now`. Null: the server's
 * clock is used. If the answer is lost and it is tried again, what was deleted before is not counted.
 */
export async function pruneStep(
  query: Query,
  { now, age, after, most, counting = false, byHand }: PruneStep,
): Promise<Pruned> {
  const [row] = await query<Omit<Pruned, 'last'> & { last: string | null }>(prune(byHand), [
    now,
    age,
    after,
    most,
    counting,
  ])
  const { last, ...counts } = row!
  return { ...counts, last: counts.looked < most ? null : Number(last) }
}

interface PruneStep {
  readonly now: Date | null
  readonly age: number
  readonly after: number
  readonly most: number
  readonly counting?: boolean | undefined
  readonly byHand: boolean
}

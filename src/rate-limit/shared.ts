import type { Log } from '../config/operator.ts'
import { batches } from '../store/batches.ts'
import type { Statement, Tx } from '../store/database.ts'
import { type Decided, gcra, type Limiter, memoryLimiter, type Quota } from './memory.ts'

/** Milliseconds that an attempt waits for the database. */
const TIMEOUT = 1_000
/** Milliseconds between two attempts that ask a database that failed. */
const COOLDOWN = 5_000

/**
 * GCRA for the attempts of several clients, in the order of the clients, so that no two instances wait for each other. A time
 * more than a window ahead was left by a clock that was set back, or by a longer window: nobody is locked out for longer.
 */
const TAKE = `
with clock as (select (extract(epoch from statement_timestamp()) * 1000000)::bigint as now)
insert into attempt as kept (client, tat, admitted)
select client, now + least(attempts, $3::bigint) * $4::bigint, least(attempts, $3::bigint)
from unnest($1::text[], $2::bigint[]) as given (client, attempts), clock
order by client collate "C"
on conflict (client) do update set (tat, admitted) = (
  select before + fitting * $4::bigint, fitting
  from clock,
    lateral (select greatest(now, least(kept.tat, now + $3::bigint * $4::bigint)) as before) as one,
    lateral (select least(excluded.admitted, $3::bigint - (before - now + $4::bigint - 1) / $4::bigint) as fitting) as two
)
returning client, tat - (select now from clock) as used, admitted`

/**
 * The limiter in memory, and behind it one that instances share in PostgreSQL. What memory refuses does not reach the database,
 * and memory learns what was decided there. While the database fails or is slow, memory alone decides.
 */
export function sharedLimiter(quota: Quota, statement: Statement, log: Log): Limiter {
  const memory = memoryLimiter(quota)
  const { interval, decision } = gcra(quota)
  const attempts = batches(takeAll, { batch: 500, queue: 10_000, timeout: TIMEOUT, parallel: 1 })
  /** Null: the database answers. */
  let askAgainAt: number | null = null

  async function takeAll(clients: readonly string[]): Promise<readonly Decided[]> {
    const counts = new Map<string, number>()
    for (const client of clients) counts.set(client, (counts.get(client) ?? 0) + 1)
    const values = [[...counts.keys()], [...counts.values()], quota.limit, interval]
    const rows = await statement<{ readonly client: string; readonly used: number; admitted: number }>(TAKE, values)
    const taken = new Map(rows.map(row => [row.client, row]))
    return clients.map(client => {
      const row = taken.get(client)!
      const admitted = row.admitted > 0
      if (admitted) row.admitted--
      return { admitted, used: row.used - row.admitted * interval }
    })
  }

  return {
    async take(client) {
      const local = await memory.take(client)
      const now = performance.now()
      if (!local.admitted || (askAgainAt !== null && now < askAgainAt)) return local
      // While it is away, only this attempt waits for it.
      if (askAgainAt !== null) askAgainAt = now + COOLDOWN
      try {
        const decided = await attempts.submit(client)
        memory.learn(client, decided)
        if (askAgainAt !== null) log.info({}, 'the shared rate limit is used again')
        askAgainAt = null
        return decision(decided)
      } catch (error) {
        const why = (error as Error).message
        if (askAgainAt === null) log.warn({ why }, 'the shared rate limit is away: each instance counts by itself')
        askAgainAt = performance.now() + COOLDOWN
        return local
      }
    },
  }
}

/** Deletes up to `most` clients whose quota is full. */
export const deleteAttempts = (tx: Tx, most: number): Promise<number> =>
  tx.run(
    'delete from attempt where client in' +
      ` (select client from attempt where tat < $1 limit $2 ${tx.dialect.skipLocked('attempt')})`,
    [tx.now * 1_000, most],
  )

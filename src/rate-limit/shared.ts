import type { Log } from '../config/operator.ts'
import { batches } from '../store/batches.ts'
import type { Database, Tx } from '../store/database.ts'
import { type Decided, gcra, type Limiter, memoryLimiter, type Quota } from './memory.ts'

/** Milliseconds that an attempt waits for the database, and for which a database that failed is not asked. */
const TIMEOUT = 1_000
const COOLDOWN = 5_000

/**
 * GCRA for the attempts of several clients, in the order of the clients, so that no two instances wait for each other. A time
 * more than a window ahead was left by a clock that was set back, or by a longer window: nobody is locked out for longer.
 * Microseconds: `$3` now, `$4` interval, `$5` burst.
 */
const TAKE = `
insert into attempt as kept (client, tat, admitted)
select client, $3 + least(attempts * $4, $5), least(attempts, $5 / $4)
from unnest($1::text[], $2::bigint[]) as given (client, attempts)
order by client collate "C"
on conflict (client) do update set (tat, admitted) = (
  select before + fitting * $4, fitting
  from
    lateral (select greatest($3, least(kept.tat, $3 + $5)) as before) as one,
    lateral (select least(excluded.admitted, ($3 + $5 - before) / $4) as fitting) as two
)
returning client, tat - $3 as used, admitted`

/**
 * The limiter in memory, and behind it one that instances share in PostgreSQL. What memory refuses does not reach the database.
 * While the database fails or is slow, memory alone decides.
 */
export function sharedLimiter(quota: Quota, database: Pick<Database, 'transaction'>, log: Log): Limiter {
  const memory = memoryLimiter(quota)
  const { interval, burst, decision } = gcra(quota)
  const attempts = batches(takeAll, { batch: 500, queue: 10_000, timeout: TIMEOUT, parallel: 1 })
  let isAway = false
  let askAgainAt = 0

  async function takeAll(clients: readonly string[]): Promise<readonly Decided[]> {
    const counts = new Map<string, number>()
    for (const client of clients) counts.set(client, (counts.get(client) ?? 0) + 1)
    const rows = await database.transaction(
      tx =>
        tx.all<{ readonly client: string; readonly used: number; admitted: number }>(TAKE, [
          [...counts.keys()],
          [...counts.values()],
          tx.now * 1_000,
          interval,
          burst,
        ]),
      { repeatable: false },
    )
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
      if (!local.admitted || performance.now() < askAgainAt) return local
      try {
        const decided = await attempts.submit(client)
        if (isAway) log.info({}, 'the shared rate limit is used again')
        isAway = false
        return decision(decided)
      } catch (error) {
        const why = (error as Error).message
        if (!isAway) log.warn({ why }, 'the shared rate limit is away: each instance counts by itself')
        isAway = true
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

import { randomUUID } from 'node:crypto'
import { type Delivery, LEASE, type Settlement, type Store } from '../../waitlist/ports.ts'
import { type Bounds, naturalBatches } from '../batch.ts'
import { EVENT_COLUMNS, type EventRow, eventOf, joinEvent } from '../delivery-rows.ts'
import type { Postgres } from './client.ts'
import type { Leases } from './leases.ts'
import { DURABLE, inMilliseconds, marked, NOW, type Ordered, runOnce } from './sql.ts'

/**
 * Takes rows that nobody else has (`skip locked`). Still leased when it is due again: whoever had it died with the
 * outcome, so there is doubt.
 */
const CLAIM = `
with taken as (
  select number, contact, attempts, doubt or token is not null as doubt, due_at from delivery
  where destination = $4 and state = 'waiting' and due_at <= ${NOW}
  order by due_at limit $5 for update skip locked
), leased as (
  update delivery set token = $2, due_at = ${inMilliseconds('$3')}, doubt = taken.doubt, attempts = delivery.attempts + 1
  from taken where delivery.number = taken.number
), ${DURABLE}
select taken.number, attempts, taken.doubt, ${EVENT_COLUMNS} from taken ${joinEvent('taken')} cross join durable
order by taken.due_at, taken.number`

/** Many at once, locked in one order. Of two with the same token the first counts. */
const SETTLE = `
with input as (
  select distinct on (number, token) * from unnest($2::bigint[], $3::uuid[], $4::text[], $5::float8[], $6::boolean[], $7::text[], $8::int[],
    $9::uuid[]) with ordinality as t (number, token, kind, wait, doubt, why, uncounted, ending, ord) order by number, token, ord
), held as (
  select input.* from input join delivery on delivery.number = input.number and delivery.token = input.token
  where delivery.state = 'waiting' order by delivery.number for update of delivery
), settled as (
  update delivery set token = null, ended_by = held.ending, state = held.kind, due_at = ${inMilliseconds('held.wait')},
    doubt = held.doubt, why = held.why, attempts = delivery.attempts - held.uncounted,
    settled_at = case when held.kind = 'waiting' then null else ${NOW} end
  from held where delivery.number = held.number
), ${DURABLE}
select ord::int from held, durable`

/** Which settlements took effect in an earlier try whose answer was lost. */
const SETTLED = `
select ord::int from unnest($1::bigint[], $2::uuid[]) with ordinality as t (number, ending, ord)
join delivery on delivery.number = t.number and ended_by = t.ending`

interface Row extends EventRow {
  readonly number: string
  readonly attempts: number
  readonly doubt: boolean
}

interface Options {
  now(): Date | null
  readonly bounds: Bounds | undefined
}

interface Outbox extends Pick<Store, 'claim' | 'settle'> {
  /** Refuses new settlements and resolves when every accepted one is stored. */
  drain(): Promise<void>
}

/** Events on their way to their destinations. */
export function postgresOutbox(database: Postgres, leases: Leases, { now, bounds }: Options): Outbox {
  const settlements = naturalBatches<{ delivery: Delivery; settlement: Settlement }, boolean>(async all => {
    const numbers = all.map(({ delivery }) => delivery.number)
    const tokens = all.map(({ delivery }) => delivery.token)
    const ends = all.map(({ settlement }) => settlement)
    const endings = all.map(() => randomUUID())
    const values = [
      ...[now(), numbers, tokens, ends.map(({ is }) => is)],
      ends.map(end => (end.is === 'waiting' ? end.wait : 0)),
      ends.map(end => end.is === 'waiting' && end.doubt),
      ends.map(end => ('why' in end ? end.why : null)),
      ends.map(end => (end.is === 'waiting' && end.uncalled ? 1 : 0)),
      endings,
    ]
    const earlier = { text: SETTLED, values: [numbers, endings] }
    return marked(all.length, await runOnce<Ordered>(database, { text: SETTLE, values }, earlier))
  }, bounds)

  return {
    async claim(destination, most) {
      const { token, rows } = await leases.take<Row>('delivery', token => {
        return { text: CLAIM, values: [now(), token, LEASE, destination, most] }
      })
      return rows.map(row => {
        const { attempts, doubt } = row
        return { number: Number(row.number), token, event: eventOf(row), attempts, doubt }
      })
    },
    settle: (delivery, settlement) => settlements.submit({ delivery, settlement }),
    drain: settlements.drain,
  }
}

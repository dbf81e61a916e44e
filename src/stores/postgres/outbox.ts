import { randomUUID } from 'node:crypto'
import { type Delivery, LEASE, NAMED, type Settlement } from '../../waitlist/ports/outbox.ts'
import type { Store } from '../../waitlist/ports/signups.ts'
import type { EventKind } from '../../waitlist/rules/contact.ts'
import { type Bounds, groupCommit } from '../group-commit.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf, underWay, untilDigest } from '../rows.ts'
import type { Postgres } from './client.ts'
import { DURABLE, inMilliseconds, NOW } from './sql.ts'

/**
 * Takes rows that nobody else holds; those that another instance is just taking are skipped (`skip locked`). A row that is
 * due and still has a token was held by a process that died, so there is doubt.
 */
const claiming = (which: string) => `
with taken as (
  select number, contact, event, attempts, doubt or token is not null as doubt, due_at
  from delivery where destination = $4 and state = 'waiting' and ${which}
  order by due_at, number limit $5 for update skip locked
), leased as (
  update delivery set token = $2, due_at = ${inMilliseconds('$3')}, doubt = taken.doubt, attempts = delivery.attempts + 1
  from taken where delivery.number = taken.number
), ${DURABLE}
select taken.number, taken.event, attempts, taken.doubt, ${CONTACT_COLUMNS}
from durable, taken join contact on contact.number = taken.contact order by taken.due_at, taken.number`

const CLAIM = claiming(`due_at <= ${NOW}`)
const CLAIM_CONTACT = claiming(`(due_at <= ${NOW} or token is null) and contact = $6`)

/**
 * Of instances that take a turn at once, one gets its row and the others wait for that commit; then they see that it is
 * taken.
 */
const UNLESS_TAKEN =
  'on conflict (name) do update set token = excluded.token, next_at = excluded.next_at' +
  ` where turn.next_at <= ${NOW} returning true`

const TAKE_TURN = `
with taken as (
  insert into turn (name, token, next_at) values ($2, $3, ${inMilliseconds('$4')}) ${UNLESS_TAKEN}
)
select exists (select from taken) as taken`

/**
 * Like a claim, for all due deliveries to a channel; none, if it is not yet the channel's turn. Arrays and subqueries, since
 * for a join of so many the server would read whole tables.
 */
const CLAIM_DIGEST = `
with near as (
  select ceil(extract(epoch from next_at - ${NOW}) * 1000)::float8 as wait from turn where name = $4 and next_at > ${NOW}
), taken as (
  select number, contact, event, attempts, doubt or token is not null as doubt, due_at from delivery
  where destination = $4 and state = 'waiting' and due_at <= ${NOW} and not exists (select from near)
  order by due_at, number limit $5 for update skip locked
), begun as (
  insert into turn (name, token, next_at)
  select $4, $2, ${inMilliseconds('$7')} where exists (select from taken) ${UNLESS_TAKEN}
), leased as (
  update delivery set token = $2, due_at = ${inMilliseconds('$3')}, doubt = doubt or token is not null, attempts = attempts + 1
  where number = any(array(select number from taken)) and exists (select from begun)
), ${DURABLE}
select exists (select from begun) as begun, (select wait from near) as wait,
  array(select number from taken order by due_at, number) as deliveries,
  array(select (select name from contact where contact.number = first.contact)
    from (select * from taken where event = 'joined' order by due_at, number limit $6) as first order by due_at, number) as names,
  (select count(*)::int from taken where event = 'invited') as invited,
  (select min(attempts) from taken) as attempts, (select count(*)::int from taken where doubt) as doubtful
from durable`

const SETTLE_DIGEST = `
with held as (
  select number from delivery where number = any(array(select unnest($2::bigint[]))) and token = $3 and state = 'waiting'
  order by number for update
), settled as (
  update delivery set token = null, state = $4, due_at = ${inMilliseconds('$5')}, why = $7,
    doubt = $4 = 'waiting' and (doubt or $6), attempts = attempts - $8,
    settled_at = case when $4 = 'waiting' then null else ${NOW} end
  where number = any(array(select number from held))
), ended as (
  update turn set next_at = ${inMilliseconds('$9')} where name = $10 and token = $3
), ${DURABLE}
select count(number)::int as held from durable left join held on true`

/** Deletes the hand-overs of contacts that were just listed, and adds the deliveries of their events. */
export const listing = (listed: string, destinations: string) => `
forgotten as (
  delete from delivery using ${listed} as done where delivery.contact = done.number
), announced as (
  insert into delivery (contact, destination, due_at)
  select done.number, destination, ${NOW} from ${listed} as done cross join unnest(${destinations}::text[]) as destination
  where done.joined
)`

/** Settles many at once, locked in one order. Of two with the same token the first counts. */
const SETTLE = `
with input as (
  select distinct on (number, token) * from unnest($2::bigint[], $3::uuid[], $4::text[], $5::float8[], $6::boolean[],
    $7::text[], $8::int[], $9::boolean[], $10::text[]) with ordinality
    as t (number, token, kind, wait, doubt, why, uncounted, joined, provider_id, ord) order by number, token, ord
), held as (
  select input.*, delivery.contact from input
  join delivery on delivery.number = input.number and delivery.token = input.token
  where delivery.state = 'waiting' order by delivery.number for update of delivery
), settled as (
  update delivery set token = null, state = held.kind, due_at = ${inMilliseconds('held.wait')}, doubt = held.doubt,
    why = held.why, attempts = delivery.attempts - held.uncounted,
    settled_at = case when held.kind = 'waiting' then null else ${NOW} end
  from held where delivery.number = held.number and held.kind in ('waiting', 'delivered', 'abandoned')
), removed as (
  delete from contact using held where contact.number = held.contact and kind = 'removed' and contact.state = 'pending'
), listed as (
  update contact set state = 'listed', provider_id = held.provider_id, event_name = case when joined then $11 end,
    event_at = case when joined then ${NOW} end
  from held where contact.number = held.contact and kind = 'listed' and contact.state = 'pending'
  returning contact.number, joined
), ${listing('listed', '$12')}, ${DURABLE}
select ord::int from held, durable`

interface Row extends ContactRow {
  readonly number: number
  readonly event: EventKind
  readonly attempts: number
  readonly doubt: boolean
}

interface DigestAnswer {
  readonly begun: boolean
  readonly wait: number | null
  readonly deliveries: readonly string[]
  readonly names: readonly string[]
  readonly invited: number
  readonly attempts: number
  readonly doubtful: number
}

interface Options {
  readonly eventName: string
  readonly destinations: readonly string[]
  /** Null: the server's clock is used. */
  now(): Date | null
  readonly bounds: Bounds | undefined
}

interface Outbox extends Pick<Store, 'claim' | 'settle' | 'claimDigest' | 'settleDigest' | 'acquireInterval'> {
  /** Refuses new settlements, and stores every accepted one. */
  close(): Promise<void>
}

/** The claims and settlements of a PostgreSQL store. */
export function postgresOutbox(database: Postgres, options: Options): Outbox {
  const { eventName, destinations, now, bounds } = options
  const settlements = groupCommit<{ delivery: Delivery; settlement: Settlement }, boolean>(
    async all => {
      const ends = all.map(({ settlement }) => settlement)
      const values = [
        now(),
        all.map(({ delivery }) => delivery.number),
        all.map(({ delivery }) => delivery.token),
        ends.map(({ is }) => is),
        ends.map(end => (end.is === 'waiting' ? end.wait : 0)),
        ends.map(end => end.is === 'waiting' && end.doubt),
        ends.map(end => ('why' in end ? end.why : null)),
        ends.map(end => (end.is === 'waiting' && end.uncounted ? 1 : 0)),
        ends.map(end => end.is === 'listed' && end.joined),
        ends.map(end => (end.is === 'listed' ? (end.providerId ?? null) : null)),
        eventName,
        destinations,
      ]
      const held = new Set((await database.run<{ ord: number }>(SETTLE, values)).map(({ ord }) => ord))
      return all.map((_, i) => held.has(i + 1))
    },
    { bounds },
  )

  return {
    async claim(destination, most, contact) {
      const token = randomUUID()
      const values = [now(), token, LEASE, destination, most]
      const rows = await (contact === undefined
        ? database.run<Row>(CLAIM, values)
        : database.run<Row>(CLAIM_CONTACT, [...values, contact]))
      return rows.map(row => {
        const { number, event, attempts, doubt } = row
        return { number, token, contact: contactOf(row), event, attempts, doubt }
      })
    },
    settle: (delivery, settlement) => settlements.submit({ delivery, settlement }),
    async claimDigest(channel, most, distance) {
      const token = randomUUID()
      const values = [now(), token, LEASE, channel, most, NAMED, underWay(distance)]
      const [answer] = await database.run<DigestAnswer>(CLAIM_DIGEST, values)
      const { begun, wait, names, invited, attempts, doubtful } = answer!
      const deliveries = answer!.deliveries.map(Number)
      if (begun) return { channel, token, deliveries, attempts, doubtful, invited, names }
      // Another instance has just begun one.
      return wait ?? (deliveries.length > 0 ? distance : null)
    },
    async settleDigest({ channel, token, deliveries }, settlement, distance) {
      const { wait, doubt, uncounted = false } = settlement.is === 'waiting' ? settlement : { wait: 0, doubt: false }
      const why = 'why' in settlement ? settlement.why : null
      const until = untilDigest(settlement, distance)
      const ending = [settlement.is, wait, doubt, why, uncounted ? 1 : 0, until, channel]
      const [row] = await database.run<{ held: number }>(SETTLE_DIGEST, [now(), deliveries, token, ...ending])
      return row!.held > 0
    },
    acquireInterval: (name, distance) =>
      database.attempt(async (query, again) => {
        const values = [now(), name, randomUUID(), distance]
        const [row] = await query<{ taken: boolean }>(TAKE_TURN, values)
        // An earlier try whose answer was lost may have taken it.
        return row!.taken || again
      }),
    close: settlements.drain,
  }
}

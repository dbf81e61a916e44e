import { randomUUIDv7 } from 'node:crypto'
import { type Admission, type Delivery, LEASE, StoreUnavailable } from '../../waitlist/ports.ts'
import { emailKey, type Signup } from '../../waitlist/signup.ts'
import { IN_PLACE } from '../deliveries.ts'
import type { Postgres, Query } from './client.ts'
import { type Moment, moment } from './moment.ts'
import { listing } from './outbox.ts'
import { DURABLE, NOW } from './sql.ts'

/**
 * One statement for a batch. It inserts in the order of the addresses, since two batches that lock the same addresses in
 * different orders would deadlock. If a batch has an address twice, the first signup counts.
 */
const admitting = (state: 'listed' | 'pending', source: '' | ', source') => `
with input as (
  select * from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]${source && ', $8::json[]'})
    with ordinality as t (id, name, email, email_key${source}, ord)
), firsts as (
  select distinct on (email_key) * from input order by email_key, ord
), added as (
  insert into contact (id, name, email, email_key, state, created_at${state === 'listed' ? ', event_name, event_at' : ''}${source})
  select id, name, email, email_key, '${state}', ${NOW}${state === 'listed' ? `, $6, ${NOW}` : ''}${source} from firsts order by email_key
  on conflict do nothing
  returning number, id, created_at
), ${DURABLE}`

/** Lists contacts at once, with their events and deliveries. */
const admitListed = (source: '' | ', source') => `${admitting('listed', source)}, announced as (
  insert into delivery (contact, destination, due_at)
  select number, destination, created_at from added cross join unnest($7::text[]) as destination ${IN_PLACE}
)
select id from added, durable`

/** Adds pending contacts, with their hand-overs leased to the caller. The contact's id is the token. */
const admitPending = (source: '' | ', source') => `${admitting('pending', source)}, leased as (
  insert into delivery (contact, destination, attempts, due_at, token)
  select number, $6, 1, created_at + $7::double precision * interval '1 millisecond', id from added ${IN_PLACE}
  returning number, token
)
select id, created_at, leased.number as delivery from added join leased on token = id cross join durable`

/** The contacts of addresses that were not added just now. */
const KNOWN = `
select contact.number, id, email_key, contact.state, created_at, delivery.number as delivery from contact
left join delivery on delivery.contact = contact.number and token = id
where email_key = any($1::text[])`

/**
 * Lists pending contacts whose provider is no longer configured, at their next signup. Locked in the same order as by
 * settlements: hand-overs first.
 */
const LIST_KNOWN = `
with handovers as (
  select number from delivery where contact = any($2::bigint[]) order by number for update
), waiting as (
  select number from contact where number = any($2::bigint[]) and state = 'pending'
    and (select count(*) from handovers) >= 0 order by number for update
), listed as (
  update contact set state = 'listed', event_name = $3, event_at = ${NOW}
  from waiting where contact.number = waiting.number returning contact.number, true as joined
), ${listing('listed', '$4')}, ${DURABLE}
select number from listed, durable`

/** A row may come and go between two statements, but not this often. */
const ROUNDS = 4

interface Insertable {
  readonly id: string
  readonly signup: Pick<Signup, 'name' | 'email' | 'source'>
  readonly key: string
}

interface Item extends Insertable {
  /** When storing it began. */
  readonly since: Moment
}

/** The hand-over's number and the time are only returned for pending contacts. */
interface Added {
  readonly id: string
  readonly created_at?: Date
  readonly delivery?: string | null
}

interface Known extends Required<Added> {
  readonly number: string
  readonly email_key: string
  readonly state: string
}

interface Options {
  readonly eventName: string
  readonly destinations: readonly string[]
  readonly provider: string | null
  /** Whether the sources of signups are kept. */
  readonly trackSources: boolean
  /** Null: the server's clock is used. */
  now(): Date | null
  leased(delivery: Delivery, since: Moment): Delivery
  /** Gives back leases whose tokens nobody received. */
  lost(tokens: readonly string[]): void
}

/** Milliseconds for a trial. */
const TRIAL = 900
/** Enforced by the server too, even behind a pooler that drops our timeouts, so that no lock is waited for any longer. */
const BEGIN_TRIAL = `begin; set local statement_timeout = ${TRIAL}; with ${DURABLE} select from durable; savepoint trial`
const END_TRIAL = 'rollback to savepoint trial; commit'

interface Signups {
  /** Records a batch. */
  admit(signups: readonly Signup[]): Promise<readonly Admission[]>
  /**
   * Records a signup, takes it back in the same transaction, and commits. That is written and synced like any other, but
   * nobody ever sees the signup, not even a logical replica.
   */
  trial(): Promise<void>
}

/** The signups of a PostgreSQL store. */
export function postgresSignups(database: Postgres, options: Options): Signups {
  const { eventName, destinations, provider, trackSources, now, leased, lost } = options
  const text = (provider === null ? admitListed : admitPending)(trackSources ? ', source' : '')

  async function admit(signups: readonly Signup[]): Promise<readonly Admission[]> {
    // The id identifies this signup: if the answer to a commit is lost, it shows whether the row is ours.
    const since = moment()
    const items: readonly Item[] = signups.map(signup => ({
      id: randomUUIDv7(),
      signup,
      key: emailKey(signup.email),
      since,
    }))
    const answers = new Map<Item, Admission>()
    try {
      let left = items
      for (let round = 1; left.length > 0; round++) {
        if (round > ROUNDS) throw new StoreUnavailable('an address is neither new nor known')
        left = await decide(left, answers)
      }
    } catch (error) {
      if (provider !== null) lost(items.map(({ id }) => id))
      throw error
    }
    return items.map(item => answers.get(item)!)
  }

  /** Finds answers, and returns the items that have none yet. */
  async function decide(items: readonly Item[], answers: Map<Item, Admission>): Promise<readonly Item[]> {
    const added = new Map((await insert(items)).map(row => [row.id, row]))
    const others: Item[] = []
    for (const item of items) {
      const row = added.get(item.id)
      if (row === undefined) others.push(item)
      else answers.set(item, addedNow(item, row))
    }
    if (others.length === 0) return others

    // The insert cannot see a row that another transaction has just committed, so a second statement looks it up.
    const rows = await database.run<Known>(KNOWN, [others.map(({ key }) => key)])
    const known = new Map(rows.map(row => [row.email_key, row]))
    const left: Item[] = []
    const waiting = new Map<number, Item>()
    for (const item of others) {
      const row = known.get(item.key)
      const number = Number(row?.number)
      if (row === undefined) left.push(item)
      else if (row.id === item.id) answers.set(item, addedNow(item, row))
      else if (row.state === 'listed') answers.set(item, { is: 'already listed' })
      else if (provider !== null) answers.set(item, { is: 'still pending', contact: number })
      else if (waiting.has(number)) left.push(item)
      else waiting.set(number, item)
    }
    if (waiting.size === 0) return left
    const listed = await list([...waiting.keys()])
    for (const [number, item] of waiting) {
      const { id: contactId } = known.get(item.key)!
      if (listed(number)) answers.set(item, { is: 'listed now', contactId })
      else left.push(item)
    }
    return left
  }

  function trial(): Promise<void> {
    const id = randomUUIDv7()
    // It is no address, so nobody can sign up with it. It is new each time, so no two instances wait for each other.
    const key = `health check ${id}`
    return database.attempt(async query => {
      await query(BEGIN_TRIAL)
      await insert([{ id, signup: { name: 'health check', email: key }, key }], query)
      await query(END_TRIAL)
    }, TRIAL)
  }

  function insert(items: readonly Insertable[], query: Query = database.run): Promise<readonly Added[]> {
    const values: unknown[] = [
      now(),
      items.map(({ id }) => id),
      items.map(({ signup }) => signup.name),
      items.map(({ signup }) => signup.email),
      items.map(({ key }) => key),
      ...(provider === null ? [eventName, destinations] : [provider, LEASE]),
    ]
    if (trackSources) {
      values.push(items.map(({ signup: { source } }) => (source === undefined ? null : JSON.stringify(source))))
    }
    return query(text, values, { prepared: true })
  }

  function addedNow({ id, since, signup: { name, email, source } }: Item, { created_at, delivery }: Added): Admission {
    if (provider === null) return { is: 'listed now', contactId: id }
    const known = { id, name, email, state: 'pending', createdAt: created_at! } as const
    const contact = source === undefined ? known : { ...known, source }
    const handOver = { number: Number(delivery), token: id, contact, attempts: 0, doubt: false }
    return { is: 'pending now', delivery: leased(handOver, since) }
  }

  /** Lists these contacts, and returns which of them were listed just now. */
  function list(numbers: readonly number[]): Promise<(number: number) => boolean> {
    return database.attempt(async (query, again) => {
      const rows = await query<{ number: string }>(LIST_KNOWN, [now(), numbers, eventName, destinations])
      const listed = new Set(rows.map(({ number }) => Number(number)))
      // An earlier try whose answer was lost may have listed them.
      return number => again || listed.has(number)
    })
  }

  return { admit, trial }
}

/** Hands pending contacts of an earlier provider over to this one. In parts, since there may be many. */
export async function adopt({ run }: Pick<Postgres, 'run'>, provider: string | null): Promise<void> {
  if (provider === null) return
  const text = `
insert into delivery (contact, destination, due_at)
select number, $1, now() from contact
where state = 'pending' and not exists (select from delivery where delivery.contact = contact.number and destination = $1)
limit 5000 on conflict do nothing returning 1`
  while ((await run(text, [provider])).length > 0);
}

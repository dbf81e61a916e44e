import { randomUUIDv7 } from 'node:crypto'
import { type Admission, LEASE, StoreUnavailable } from '../../waitlist/ports.ts'
import { emailKey, type Signup } from '../../waitlist/signup.ts'
import type { Postgres } from './client.ts'
import type { Leases } from './leases.ts'
import { DURABLE, runOnce } from './sql.ts'

/**
 * One statement for a batch. The order of the insert is that of the addresses: two batches that lock the same ones in
 * different orders would wait for each other. Of one address in a batch the first signup counts. The conflict may also be
 * about the id, when an earlier try of the same batch is still under way.
 */
const ADMIT = `
with input as (
  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) with ordinality as t (id, name, email, email_key, ord)
), firsts as (
  select distinct on (email_key) * from input order by email_key, ord
), added as (
  insert into contact (id, name, email, email_key, state, created_at)
  select id, name, email, email_key, $5, coalesce($6::timestamptz, now()) from firsts order by email_key
  on conflict do nothing
  returning number, id, created_at
), ${DURABLE}`

/** Listed at once, with its event and its deliveries. */
const ADMIT_LISTED = `${ADMIT}, announced as (
  insert into event (contact, name, created_at) select number, $7, created_at from added
), told as (
  insert into delivery (contact, destination, due_at)
  select number, destination, created_at from added cross join unnest($8::text[]) as destination
)
select id from added, durable`

/** Pending, and leased to whoever admitted it; its id is the token. */
const ADMIT_PENDING = `${ADMIT}, leased as (
  insert into registration (contact, provider, attempts, due_at, token)
  select number, $7, 1, created_at + $8::double precision * interval '1 millisecond', id from added
)
select id, created_at from added, durable`

/** What became of addresses that were not added just now. */
const KNOWN = 'select id, email_key, state, created_at from contact where email_key = any($1::text[])'

/**
 * Contacts that wait for a provider which is not configured any more: whoever signs up again is listed. Locked in the
 * order in which conclusions are.
 */
const LIST_KNOWN = `
with waiting as (
  select registration.contact, t.token from unnest($1::uuid[], $2::uuid[]) as t (id, token)
  join contact on contact.id = t.id join registration on registration.contact = contact.number
  order by registration.contact for update of registration
), freed as (
  delete from registration using waiting where registration.contact = waiting.contact
), listed as (
  update contact set state = 'listed', listed_by = token from waiting where number = waiting.contact returning number, id
), announced as (
  insert into event (contact, name, created_at) select number, $3, coalesce($4::timestamptz, now()) from listed
), told as (
  insert into delivery (contact, destination, due_at)
  select number, destination, coalesce($4::timestamptz, now()) from listed cross join unnest($5::text[]) as destination
), ${DURABLE}
select id from listed, durable`

const LISTED = 'select id from contact where id = any($1::uuid[]) and listed_by = any($2::uuid[])'

/** A row that comes and goes between two statements is met again; not this often. */
const ROUNDS = 4

interface Item {
  readonly id: string
  readonly signup: Signup
  readonly key: string
}

interface Row {
  readonly id: string
  readonly email_key: string
  readonly state: string
  readonly created_at: Date
}

/** The time is only told of what is pending. */
type Added = Pick<Row, 'id'> & Partial<Pick<Row, 'created_at'>>

interface Options {
  readonly eventName: string
  readonly destinations: readonly string[]
  readonly provider: string | null
  now(): Date | null
}

/** Records a batch of signups. */
export function postgresSignups(database: Postgres, leases: Leases, options: Options) {
  const { run } = database
  const { eventName, destinations, provider, now } = options

  return async (signups: readonly Signup[]): Promise<readonly Admission[]> => {
    // The id is the token of this signup: when the answer to a commit is lost, it tells whether the row is ours.
    const items: readonly Item[] = signups.map(signup => ({ id: randomUUIDv7(), signup, key: emailKey(signup.email) }))
    const answers = new Map<Item, Admission>()
    try {
      let left = items
      for (let round = 1; left.length > 0; round++) {
        if (round > ROUNDS) throw new StoreUnavailable('an address is neither new nor known')
        left = await decide(left, answers)
      }
    } catch (error) {
      if (provider !== null) {
        leases.lost(
          'registration',
          items.map(({ id }) => id),
        )
      }
      throw error
    }
    return items.map(item => answers.get(item)!)
  }

  /** Finds answers and returns the items that have none yet. */
  async function decide(items: readonly Item[], answers: Map<Item, Admission>): Promise<readonly Item[]> {
    const added = new Map((await insert(items)).map(row => [row.id, row]))
    const others: Item[] = []
    for (const item of items) {
      const row = added.get(item.id)
      if (row === undefined) others.push(item)
      else answers.set(item, addedNow(item, row))
    }
    if (others.length === 0) return others

    // A row that another transaction committed meanwhile is not visible to the statement that met it, so ask anew.
    const keys = others.map(({ key }) => key)
    const rows = await run<Row>(() => ({ text: KNOWN, values: [keys] }))
    const known = new Map(rows.map(row => [row.email_key, row]))
    const left: Item[] = []
    const waiting = new Map<string, Item>()
    for (const item of others) {
      const row = known.get(item.key)
      if (row === undefined) left.push(item)
      else if (row.id === item.id) answers.set(item, addedNow(item, row))
      else if (row.state === 'listed') answers.set(item, { is: 'already listed' })
      else if (provider !== null) answers.set(item, { is: 'still pending', contactId: row.id })
      else if (waiting.has(row.id)) left.push(item)
      else waiting.set(row.id, item)
    }
    if (waiting.size === 0) return left
    const listed = await list(waiting)
    for (const [contactId, item] of waiting) {
      if (listed.has(contactId)) answers.set(item, { is: 'listed now', contactId })
      else left.push(item)
    }
    return left
  }

  function insert(items: readonly Item[]): Promise<readonly Added[]> {
    const values = [
      items.map(({ id }) => id),
      items.map(({ signup }) => signup.name),
      items.map(({ signup }) => signup.email),
      items.map(({ key }) => key),
      ...[provider === null ? 'listed' : 'pending', now()],
      ...(provider === null ? [eventName, destinations] : [provider, LEASE]),
    ]
    return run(() => ({ text: provider === null ? ADMIT_LISTED : ADMIT_PENDING, values, prepared: true }))
  }

  function addedNow({ id, signup: { name, email } }: Item, { created_at }: Added): Admission {
    if (provider === null) return { is: 'listed now', contactId: id }
    const contact = { id, name, email, state: 'pending', createdAt: created_at! } as const
    return { is: 'pending now', registration: { contact, token: id, doubt: false, attempts: 0 } }
  }

  async function list(waiting: ReadonlyMap<string, Item>): Promise<ReadonlySet<string>> {
    const ids = [...waiting.keys()]
    const tokens = [...waiting.values()].map(({ id }) => id)
    const statement = { text: LIST_KNOWN, values: [ids, tokens, eventName, now(), destinations] }
    const listed = await runOnce<{ id: string }>(database, statement, { text: LISTED, values: [ids, tokens] })
    return new Set(listed.map(({ id }) => id))
  }
}

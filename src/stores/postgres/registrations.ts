import { randomUUID } from 'node:crypto'
import { type Beginning, type Conclusion, LEASE, type Registration, type Store } from '../../waitlist/ports.ts'
import { type Bounds, naturalBatches } from '../batch.ts'
import type { Postgres } from './client.ts'
import type { Leases } from './leases.ts'
import { DURABLE, inMilliseconds, marked, NOW, type Ordered, runOnce } from './sql.ts'

/** Takes rows that nobody else has: instances pass over what another one is just taking (`skip locked`). */
const take = (which: string) => `
with taken as (
  select registration.contact, registration.attempts, registration.due_at,
    (doubt or token is not null) and registration.provider is not distinct from $3::text as doubt
  from registration join contact on contact.number = registration.contact
  where ${which}
  order by registration.due_at limit $5 for update of registration skip locked
), leased as (
  update registration
  set token = $2, due_at = ${inMilliseconds('$4')}, doubt = taken.doubt, attempts = registration.attempts + 1, provider = $3
  from taken where registration.contact = taken.contact
), ${DURABLE}
select id, name, email, created_at, attempts, doubt
from taken join contact on contact.number = taken.contact cross join durable order by taken.due_at`

const BEGIN = take(`contact.id = $6 and (registration.token is null or registration.due_at <= ${NOW})`)
const BEGIN_DUE = take(`registration.due_at <= ${NOW}`)
const BEGIN_EARLY = take(`(registration.token is null or registration.due_at <= ${NOW})`)

/** Many at once, locked in one order. Of two with the same token the first counts. */
const CONCLUDE = `
with input as (
  select distinct on (id, token) * from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::float8[], $7::boolean[], $8::text[], $11::int[],
    $12::uuid[]) with ordinality as t (id, token, kind, provider_id, wait, doubt, why, uncounted, ending, ord)
  order by id, token, ord
), held as (
  select registration.contact, input.* from input
  join contact on contact.id = input.id
  join registration on registration.contact = contact.number and registration.token = input.token
  order by registration.contact for update of registration
), postponed as (
  update registration set token = null, ended_by = held.ending, due_at = ${inMilliseconds('held.wait')}, doubt = held.doubt,
    why = held.why, attempts = registration.attempts - held.uncounted
  from held where registration.contact = held.contact and kind = 'pending'
), freed as (
  delete from registration using held where registration.contact = held.contact and kind <> 'pending'
), removed as (
  delete from contact using held where number = held.contact and kind = 'refused'
), listed as (
  update contact set state = 'listed', provider_id = held.provider_id, listed_by = held.ending
  from held where number = held.contact and kind in ('created', 'existing') returning number, kind
), announced as (
  insert into event (contact, name, created_at) select number, $9, ${NOW} from listed where kind = 'created' returning contact
), told as (
  insert into delivery (contact, destination, due_at)
  select contact, destination, ${NOW} from announced cross join unnest($10::text[]) as destination
), ${DURABLE}
select ord::int from held, durable`

/** Which conclusions took effect in an earlier try whose answer was lost. */
const CONCLUDED = `
select ord::int from unnest($1::uuid[], $2::uuid[], $3::text[]) with ordinality as t (id, ending, kind, ord)
left join contact on contact.id = t.id left join registration on registration.contact = contact.number
where listed_by = t.ending or ended_by = t.ending or (kind = 'refused' and contact.id is null)`

/** An outage can leave a million; a statement must end in time, and signups get between. */
const HASTENED = 5_000
const HASTEN = `
with chosen as (
  select contact from registration where token is null and due_at > ${NOW}
  order by due_at limit ${HASTENED} for update skip locked
), hastened as (
  update registration set due_at = ${NOW} from chosen where registration.contact = chosen.contact returning 1
)
select count(*)::int as rows from hastened`

interface Row {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly created_at: Date
  readonly attempts: number
  readonly doubt: boolean
}

interface Options {
  readonly eventName: string
  readonly destinations: readonly string[]
  now(): Date | null
  readonly bounds: Bounds | undefined
}

interface Registrations extends Pick<Store, 'begin' | 'beginDue' | 'conclude' | 'hasten'> {
  /** Refuses new conclusions and resolves when every accepted one is stored. */
  drain(): Promise<void>
}

/** Contacts that a provider has yet to confirm. */
export function postgresRegistrations(database: Postgres, leases: Leases, options: Options): Registrations {
  const { run } = database
  const { eventName, destinations, now, bounds } = options

  const conclusions = naturalBatches<{ registration: Registration; conclusion: Conclusion }, boolean>(async all => {
    const ids = all.map(({ registration }) => registration.contact.id)
    const tokens = all.map(({ registration }) => registration.token)
    const ends = all.map(({ conclusion }) => conclusion)
    const kinds = ends.map(({ is }) => is)
    const endings = all.map(() => randomUUID())
    const values = [
      ...[now(), ids, tokens, kinds],
      ends.map(end => ('providerId' in end ? (end.providerId ?? null) : null)),
      ends.map(end => (end.is === 'pending' ? end.wait : 0)),
      ends.map(end => end.is === 'pending' && end.doubt),
      ends.map(end => (end.is === 'pending' ? end.why : null)),
      ...[eventName, destinations],
      ends.map(end => (end.is === 'pending' && end.uncalled ? 1 : 0)),
      endings,
    ]
    const earlier = { text: CONCLUDED, values: [ids, endings, kinds] }
    return marked(all.length, await runOnce<Ordered>(database, { text: CONCLUDE, values }, earlier))
  }, bounds)

  return {
    async begin(contactId, provider): Promise<Beginning> {
      const { token, rows } = await leases.take<Row>('registration', token => {
        return { text: BEGIN, values: [now(), token, provider, LEASE, 1, contactId] }
      })
      if (rows[0] !== undefined) return { is: 'ours', registration: registrationOf(rows[0], token) }
      const [known] = await run<{ state: string }>(() => {
        return { text: 'select state from contact where id = $1', values: [contactId] }
      })
      if (known === undefined) return { is: 'gone' }
      return known.state === 'listed' ? { is: 'listed' } : { is: 'taken' }
    },

    async beginDue(provider, most, early) {
      const { token, rows } = await leases.take<Row>('registration', token => {
        return { text: early ? BEGIN_EARLY : BEGIN_DUE, values: [now(), token, provider, LEASE, most] }
      })
      return rows.map(row => registrationOf(row, token))
    },

    conclude: (registration, conclusion) => conclusions.submit({ registration, conclusion }),

    async hasten() {
      for (let rows = HASTENED; rows === HASTENED; ) {
        const [hastened] = await run<{ rows: number }>(() => ({ text: HASTEN, values: [now()] }))
        rows = hastened!.rows
      }
    },

    drain: conclusions.drain,
  }
}

function registrationOf({ id, name, email, attempts, doubt, created_at }: Row, token: string): Registration {
  return { contact: { id, name, email, state: 'pending', createdAt: created_at }, token, doubt, attempts }
}

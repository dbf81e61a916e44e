import { randomUUIDv7 } from 'node:crypto'
import { LEASE } from '../../waitlist/ports/outbox.ts'
import { type Admission, StoreUnavailable } from '../../waitlist/ports/signups.ts'
import { ASKED_DISTANCE, ASKED_MOST, type ContactState, type HoldReason } from '../../waitlist/rules/contact.ts'
import type { HoldRules } from '../../waitlist/rules/hold.ts'
import { mailboxOf } from '../../waitlist/rules/mailbox.ts'
import { emailKey, type Signup } from '../../waitlist/rules/signup.ts'
import { UPSERT_DELIVERY } from '../rows.ts'
import type { Postgres, Query } from './client.ts'
import { BEGIN, type Gate, gating } from './gate.ts'
import { listing } from './outbox.ts'
import { DURABLE, NOW } from './sql.ts'

/**
 * One statement for a batch. It inserts in the order of the addresses, since two batches that lock the same addresses in
 * different orders would deadlock. If a batch has an address twice, the first signup counts.
 */
const admitting = (state: 'listed' | 'pending' | 'unconfirmed', { trackSources, holds }: Kept) => {
  /** The mailbox, and what is only stored where it is wanted. */
  const more = [
    { column: 'mailbox', type: 'text' },
    ...(trackSources ? [{ column: 'source', type: 'json' }] : []),
    ...(holds === null ? [] : [{ column: 'reason', type: 'text' }]),
  ]
  const first = state === 'unconfirmed' ? 7 : 8
  const moreParameters = more.map(({ type }, i) => `, $${i + first}::${type}[]`).join('')
  const moreColumns = more.map(({ column }) => `, ${column}`).join('')

  const unlessHeld = (value: string) => (holds === null ? value : `case when reason is null then ${value} end`)
  const stateOfEach = holds === null ? `'${state}'` : `case when reason is null then '${state}' else 'held' end`
  const eventColumns = { listed: ', event_name, event_at', pending: '', unconfirmed: ', asked_at, asks' }[state]
  const event = {
    listed: `, ${unlessHeld('$6')}, ${unlessHeld(NOW)}`,
    pending: '',
    unconfirmed: `, ${unlessHeld(NOW)}, ${unlessHeld('1')}`,
  }[state]
  return `
with input as (
  select * from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]${moreParameters})
    with ordinality as t (id, name, email, email_key${moreColumns}, ord)
), firsts as (
  select distinct on (email_key) * from input order by email_key, ord
), added as (
  insert into contact (id, name, email, email_key, state, created_at${eventColumns}${moreColumns})
  select id, name, email, email_key, ${stateOfEach}, ${NOW}${event}${moreColumns} from firsts order by email_key
  on conflict do nothing
  returning number, id, created_at, state${holds === null ? '' : ', reason'}
), ${DURABLE}`
}

const REASON = ({ holds }: Kept) => (holds === null ? '' : ', reason')
const LET_IN = ({ holds }: Kept) => (holds === null ? '' : " where state <> 'held'")

/** Lists contacts at once, with their events and deliveries. */
const admitListed = (kept: Kept) => `${admitting('listed', kept)}, announced as (
  insert into delivery (contact, destination, due_at)
  select number, destination, created_at from added cross join unnest($7::text[]) as destination${LET_IN(kept)}
)
select id, state${REASON(kept)} from added cross join durable`

/** Adds pending contacts, with their hand-overs leased to the caller. The contact's id is the token. */
const admitPending = (kept: Kept) => `${admitting('pending', kept)}, leased as (
  insert into delivery (contact, destination, attempts, due_at, token)
  select number, $6, 1, created_at + $7::double precision * interval '1 millisecond', id from added${LET_IN(kept)}
  returning number, token
)
select id, created_at, state${REASON(kept)}, leased.number as delivery from added cross join durable left join leased on token = id`

/** Adds unconfirmed contacts, with the deliveries that ask them for a confirmation. */
const admitUnconfirmed = (kept: Kept) => `${admitting('unconfirmed', kept)}, asked as (
  insert into delivery (contact, destination, event, due_at)
  select number, $6, 'asked', created_at from added${LET_IN(kept)}
)
select id, state${REASON(kept)} from added cross join durable`

/** The contacts of addresses that were not added just now. */
const KNOWN = `
select contact.number, id, email_key, contact.state, reason, created_at, delivery.number as delivery from contact
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

/** Asks contacts again to confirm their address. Locked in the same order as by settlements: deliveries first. */
const ASK_AGAIN = `
with mails as (
  select number from delivery where contact = any($2::bigint[]) and destination = $3 and event = 'asked' order by number for update
), due as (
  select number from contact where number = any($2::bigint[]) and state = 'unconfirmed' and asks < ${ASKED_MOST}
    and extract(epoch from ${NOW} - asked_at) * 1000 >= ${ASKED_DISTANCE} and (select count(*) from mails) >= 0
    and not exists (select from delivery
      where contact = contact.number and destination = $3 and event = 'asked' and delivery.state = 'waiting')
  order by number for update
), again as (
  update contact set asked_at = ${NOW}, asks = asks + 1 from due where contact.number = due.number returning contact.number
), asked as (
  insert into delivery (contact, destination, event, due_at)
  select number, $3, 'asked', ${NOW} from again order by number ${UPSERT_DELIVERY}
), ${DURABLE}
select number from again, durable`

/** A row may come and go between two statements, but not this often. */
const ROUNDS = 4

const NOBODY: ReadonlySet<unknown> = new Set()

interface Insertable {
  readonly id: string
  readonly signup: Pick<Signup, 'name' | 'email' | 'source'>
  readonly key: string
}

interface Item extends Insertable {
  readonly signup: Signup
}

/** The hand-over's number and the time are only returned for pending contacts. */
interface Added {
  readonly id: string
  readonly state: ContactState
  readonly reason?: HoldReason | null
  readonly created_at?: number
  readonly delivery?: number | null
}

interface Known extends Required<Added> {
  readonly number: number
  readonly email_key: string
}

/** What is kept of a signup beside its name and address. */
interface Kept {
  /** Whether the sources of signups are kept. */
  readonly trackSources: boolean
  /** Null: no signup is held, and none has a proof. */
  readonly holds: HoldRules | null
}

interface Options extends Kept {
  readonly eventName: string
  readonly destinations: readonly string[]
  readonly provider: string | null
  readonly asks: string | null
  /** Null: the server's clock is used. */
  now(): Date | null
}

/** Milliseconds for a trial. */
const TRIAL = 900
/** Enforced by the server too, even behind a pooler that drops our timeouts, so that no lock is waited for any longer. */
const BEGIN_TRIAL = `begin; set local statement_timeout = ${TRIAL}; with ${DURABLE} select from durable; savepoint trial`
const END_TRIAL = 'rollback to savepoint trial; commit'

/** The signups of a PostgreSQL store. */
export function postgresSignups(database: Postgres, options: Options) {
  const { eventName, destinations, provider, asks, trackSources, holds, now } = options
  const text = (asks !== null ? admitUnconfirmed : provider === null ? admitListed : admitPending)(options)
  const gate = holds === null ? null : gating<Item>({ rules: holds, now })

  /** Records a batch. */
  async function admit(signups: readonly Signup[]): Promise<readonly Admission[]> {
    // The id identifies this signup: if the answer to a commit is lost, it shows whether the row is ours.
    const items: readonly Item[] = signups.map(signup => ({
      id: randomUUIDv7(),
      signup,
      key: emailKey(signup.email),
    }))
    const answers = new Map<Item, Admission>()
    let left = items
    for (let round = 1; left.length > 0; round++) {
      if (round > ROUNDS) throw new StoreUnavailable('an address is neither new nor known')
      left = await decide(left, answers)
    }
    return items.map(item => answers.get(item)!)
  }

  /** Finds answers, and returns the items that have none yet. */
  async function decide(items: readonly Item[], answers: Map<Item, Admission>): Promise<readonly Item[]> {
    const others = await addNew(items, answers)
    if (others.length === 0) return others
    // The insert cannot see a row that another transaction has just committed, so a second statement looks it up.
    const found = await database.run<Known>(KNOWN, [others.map(({ key }) => key)])
    return answerKnown(others, new Map(found.map(row => [row.email_key, row])), answers)
  }

  /** Adds those who are new, and returns the others. */
  async function addNew(items: readonly Item[], answers: Map<Item, Admission>): Promise<readonly Item[]> {
    const { rows, spent } = gate === null ? { rows: await insert(items), spent: NOBODY } : await letIn(items, gate)
    const added = new Map(rows.map(row => [row.id, row]))
    const others: Item[] = []
    for (const item of items) {
      const row = added.get(item.id)
      if (spent.has(item)) answers.set(item, { is: 'spent' })
      else if (row === undefined) others.push(item)
      else answers.set(item, addedNow(item, row))
    }
    return others
  }

  /** Answers those whose rows were found, by their keys, and returns the others. */
  async function answerKnown(
    items: readonly Item[],
    known: ReadonlyMap<string, Known>,
    answers: Map<Item, Admission>,
  ): Promise<readonly Item[]> {
    const left: Item[] = []
    /** Who waits for a provider that is no longer configured, by the contact's number: the first of each address. */
    const waiting = new Map<number, Item>()
    const unconfirmed = new Map<Item, Known>()
    for (const item of items) {
      const row = known.get(item.key)
      if (row === undefined) left.push(item)
      // An earlier try whose answer was lost has added it.
      else if (row.id === item.id) answers.set(item, addedNow(item, row))
      else if (row.state === 'unconfirmed') unconfirmed.set(item, row)
      else if (row.state === 'held') answers.set(item, { is: 'still held' })
      else if (row.state === 'listed' || row.state === 'invited') answers.set(item, { is: 'already listed' })
      else if (provider !== null) answers.set(item, { is: 'still pending', contact: row.number })
      else if (waiting.has(row.number)) left.push(item)
      else waiting.set(row.number, item)
    }
    if (unconfirmed.size > 0) {
      const asked = await askAgain([...unconfirmed.values()].map(({ number }) => number))
      for (const [item, { number, id: contactId }] of unconfirmed) {
        answers.set(item, { is: 'unconfirmed', contactId, asked: asked.has(number) })
      }
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

  /**
   * Records a signup, takes it back in the same transaction, and commits. That is written and synced like any other, but
   * nobody ever sees the signup, not even a logical replica.
   */
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

  /** Of those with the same address in one batch, the first is stored. */
  function letIn(items: readonly Item[], gate: Gate<Item>) {
    return database.attempt(async query => {
      await query(BEGIN)
      const { reasons, spent } = await gate(items, query)
      const rows = reasons.size === 0 ? [] : await insert([...reasons.keys()], query, reasons)
      await query('commit')
      return { rows, spent }
    })
  }

  function insert(
    items: readonly Insertable[],
    query: Query = database.run,
    reasons?: ReadonlyMap<Insertable, HoldReason | null>,
  ): Promise<readonly Added[]> {
    const values: unknown[] = [
      now(),
      items.map(({ id }) => id),
      items.map(({ signup }) => signup.name),
      items.map(({ signup }) => signup.email),
      items.map(({ key }) => key),
      ...(asks !== null ? [asks] : provider === null ? [eventName, destinations] : [provider, LEASE]),
    ]
    values.push(items.map(({ key }) => mailboxOf(key)))
    if (trackSources) {
      values.push(items.map(({ signup: { source } }) => (source === undefined ? null : JSON.stringify(source))))
    }
    if (holds !== null) values.push(items.map(item => reasons?.get(item) ?? null))
    return query(text, values)
  }

  function addedNow({ id, signup: { name, email, source } }: Item, { created_at, delivery, reason }: Added): Admission {
    if (reason != null) return { is: 'held now', reason }
    if (asks !== null) return { is: 'unconfirmed', contactId: id, asked: true }
    if (provider === null) return { is: 'listed now', contactId: id }
    const known = { id, name, email, state: 'pending', createdAt: new Date(created_at!) } as const
    const contact = source === undefined ? known : { ...known, source }
    return {
      is: 'pending now',
      delivery: { number: delivery!, token: id, contact, event: 'joined', attempts: 0, doubt: false },
    }
  }

  /** Asks those of them again who may be, and returns who they are. */
  async function askAgain(numbers: readonly number[]): Promise<ReadonlySet<number>> {
    if (asks === null) return new Set()
    const rows = await database.run<{ number: number }>(ASK_AGAIN, [now(), numbers, asks])
    return new Set(rows.map(({ number }) => number))
  }

  /** Lists these contacts, and returns which of them were listed just now. */
  function list(numbers: readonly number[]): Promise<(number: number) => boolean> {
    return database.attempt(async (query, again) => {
      const rows = await query<{ number: number }>(LIST_KNOWN, [now(), numbers, eventName, destinations])
      const listed = new Set(rows.map(({ number }) => number))
      // An earlier try whose answer was lost may have listed them.
      return number => again || listed.has(number)
    })
  }

  return { admit, trial }
}

/**
 * Hands pending contacts of an earlier provider over to this one. In parts, since there may be many. Those that
 * are being removed are skipped.
 */
export async function adopt({ run }: Pick<Postgres, 'run'>, provider: string | null): Promise<void> {
  if (provider === null) return
  const text = `
insert into delivery (contact, destination, due_at)
select number, $1, now() from contact
where state = 'pending' and not exists (select from delivery where delivery.contact = contact.number and destination = $1)
limit 5000 for key share skip locked on conflict do nothing returning 1`
  while ((await run(text, [provider])).length > 0);
}

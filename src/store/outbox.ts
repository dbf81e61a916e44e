import { randomUUID } from 'node:crypto'
import type { Contact, DeliveryKind } from '../signup/contact.ts'
import { emailKey } from '../signup/contact.ts'
import { addDeliveries, type SignupTargets } from './activate.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf } from './contacts.ts'
import type { Tx } from './database.ts'

/**
 * Milliseconds for which a delivery is leased. Longer than any attempt, so that two are never under way at once. What a dead
 * process held is due again when its lease ends, so others find it within a minute.
 */
export const LEASE = 55_000

/** One contact for one destination, leased to the holder of the token. */
export interface Delivery {
  readonly number: number
  readonly token: string
  readonly contact: Contact
  readonly kind: DeliveryKind
  /** Earlier attempts, without those that do not count (`Settlement`). */
  readonly attempts: number
  /** Whether an earlier attempt may have taken effect without our knowing. */
  readonly doubt: boolean
}

/** How an attempt ended. */
export type Settlement =
  | { readonly is: 'delivered' }
  | {
      readonly is: 'retry'
      /** Milliseconds. */
      readonly wait: number
      readonly doubt: boolean
      readonly why: string
      /** False: the delivery is not to blame, since nothing was sent, or the destination is out. */
      readonly counts: boolean
    }
  | { readonly is: 'abandoned'; readonly why: string }
  /** A hand-over: the contact is listed. `joined`: its event and that event's deliveries are created too. */
  | { readonly is: 'listed'; readonly joined: boolean; readonly providerId?: string | undefined }
  /** A hand-over: the provider refuses the address for good, so the contact is taken off the list. */
  | { readonly is: 'removed'; readonly why: string }

interface DueRow extends ContactRow {
  readonly number: number
  readonly kind: DeliveryKind
  readonly attempts: number
  readonly doubt: number
  readonly token: string | null
}

/** Whose deliveries go first: somebody waits for a confirmation, and thousands are invited at once. */
const PRIORITIES: readonly DeliveryKind[] = ['handover', 'confirmation', 'joined', 'invited']

/**
 * Leases up to `most` due deliveries to a destination, by `PRIORITIES`, the longest due first. With `address`: only the
 * hand-over of this contact, due or not, unless it is leased.
 */
export async function claim(tx: Tx, destination: string, most: number, address?: string): Promise<readonly Delivery[]> {
  const which = address === undefined ? 'due_at <= $3' : '(due_at <= $3 or token is null) and email_key = $5'
  const rows: DueRow[] = []
  for (const kind of address === undefined ? PRIORITIES : (['handover'] as const)) {
    if (rows.length >= most) break
    const found = await tx.all<DueRow>(
      `select delivery.number, kind, attempts, doubt, token, ${CONTACT_COLUMNS}` +
        ' from delivery join contact on contact.number = delivery.contact' +
        ` where destination = $1 and kind = $2 and delivery.state = 'waiting' and ${which}` +
        ` order by due_at, delivery.number limit $4 ${tx.dialect.skipLocked('delivery')}`,
      [destination, kind, tx.now, most - rows.length, ...(address === undefined ? [] : [emailKey(address)])],
    )
    rows.push(...found)
  }
  if (rows.length === 0) return []
  const token = randomUUID()
  // What is due and still has a token was held by a process that died with the outcome.
  await tx.run(
    'update delivery set doubt = case when token is null then doubt else 1 end, token = $1, due_at = $2' +
      ` where ${tx.dialect.among('number', '$3')}`,
    [token, tx.now + LEASE, rows.map(({ number }) => number)],
  )
  return rows.map(row => {
    const { number, kind, attempts } = row
    return { number, token, contact: contactOf(row), kind, attempts, doubt: row.doubt === 1 || row.token !== null }
  })
}

export interface Settled {
  readonly delivery: Pick<Delivery, 'number' | 'token'>
  readonly settlement: Settlement
}

/**
 * Ends attempts in one atomic step. False for those whose lease another attempt took over, or whose contact was erased:
 * nothing was changed then.
 */
export async function settle(
  tx: Tx,
  all: readonly Settled[],
  targets: Pick<SignupTargets, 'eventName' | 'destinations'>,
): Promise<readonly boolean[]> {
  const leased = await tx.all<{ number: number; token: string; contact: number }>(
    `select number, token, contact from delivery where ${tx.dialect.among('number', '$1')}` +
      ` and state = 'waiting' order by number ${tx.dialect.forUpdate}`,
    [all.map(({ delivery }) => delivery.number)],
  )
  const contacts = new Map(leased.map(({ number, token, contact }) => [`${number} ${token}`, contact]))
  const held = new Map<Settled, number>()
  for (const each of all) {
    const key = `${each.delivery.number} ${each.delivery.token}`
    const contact = contacts.get(key)
    if (contact !== undefined) held.set(each, contact)
    // Of two with one token the first counts.
    contacts.delete(key)
  }
  await endAttempts(tx, [...held.keys()])
  await list(tx, held, targets)
  const removed = [...held].filter(([{ settlement }]) => settlement.is === 'removed').map(([, contact]) => contact)
  if (removed.length > 0)
    await tx.run(`delete from contact where ${tx.dialect.among('number', '$1')} and state = 'pending'`, [removed])
  // An earlier try of this transaction may have ended them.
  return all.map(each => held.has(each) || tx.again)
}

async function endAttempts(tx: Tx, all: readonly Settled[]): Promise<void> {
  const ended = all.flatMap(({ delivery: { number }, settlement }) => {
    if (settlement.is === 'listed' || settlement.is === 'removed') return []
    const waits = settlement.is === 'retry'
    return {
      number,
      state: waits ? 'waiting' : settlement.is,
      due_at: tx.now + (waits ? Math.round(settlement.wait) : 0),
      doubt: waits && settlement.doubt ? 1 : 0,
      counted: waits && !settlement.counts ? 0 : 1,
      why: settlement.is === 'delivered' ? null : settlement.why,
      settled_at: waits ? null : tx.now,
    }
  })
  if (ended.length === 0) return
  const columns = {
    number: 'bigint',
    state: 'text',
    due_at: 'bigint',
    doubt: 'bigint',
    counted: 'bigint',
    why: 'text',
  } as const
  await tx.run(
    'update delivery set token = null, state = ended.state, due_at = ended.due_at, doubt = ended.doubt, why = ended.why,' +
      ' settled_at = ended.settled_at, attempts = attempts + ended.counted' +
      ` from ${tx.dialect.rows('$1', { ...columns, settled_at: 'bigint' })} as ended where delivery.number = ended.number`,
    [JSON.stringify(ended)],
  )
}

/** Lists those whom the provider has taken, with their events and the deliveries of those. */
async function list(
  tx: Tx,
  held: ReadonlyMap<Settled, number>,
  { eventName, destinations }: Pick<SignupTargets, 'eventName' | 'destinations'>,
): Promise<void> {
  const listed = [...held].flatMap(([{ settlement }, number]) =>
    settlement.is === 'listed'
      ? { number, provider_id: settlement.providerId ?? null, event_at: settlement.joined ? tx.now : null }
      : [],
  )
  if (listed.length === 0) return
  const columns = { number: 'bigint', provider_id: 'text', event_at: 'bigint' } as const
  await tx.run(
    "update contact set state = 'listed', provider_id = listed.provider_id, event_at = listed.event_at," +
      ' event_name = case when listed.event_at is null then null else $2 end' +
      ` from ${tx.dialect.rows('$1', columns)} as listed where contact.number = listed.number and state = 'pending'`,
    [JSON.stringify(listed), eventName],
  )
  const numbers = listed.map(({ number }) => number)
  await tx.run(`delete from delivery where ${tx.dialect.among('contact', '$1')} and kind = 'handover'`, [numbers])
  const joined = listed.filter(({ event_at }) => event_at !== null).map(({ number }) => number)
  await addDeliveries(tx, joined, 'joined', destinations)
}

/**
 * Moves the hand-overs that wait for an earlier provider to this one, which was never asked about them, so there is no
 * doubt. Returns how many there were.
 */
export const moveHandovers = (tx: Tx, provider: string): Promise<number> =>
  tx.run(
    "update delivery set destination = $1, state = 'waiting', attempts = 0, doubt = 0, token = null, due_at = $2, why = null," +
      " settled_at = null where kind = 'handover' and destination <> $1" +
      " and contact in (select number from contact where state = 'pending')",
    [provider, tx.now],
  )

/** Takes what one of several instances does at a time, for so many milliseconds. False: one of them has it. */
export const tryAcquireLock = async (tx: Tx, name: string, ttl: number): Promise<boolean> =>
  (await tx.run(
    'insert into job_lock (name, until) values ($1, $2)' +
      ' on conflict (name) do update set until = excluded.until where job_lock.until <= $3',
    [name, tx.now + ttl, tx.now],
  )) > 0

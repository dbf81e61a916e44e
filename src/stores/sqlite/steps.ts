import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { Beginning, Conclusion, Delivery, Registration, Settlement } from '../../waitlist/ports.ts'
import { LEASE } from '../../waitlist/ports.ts'
import { EVENT_COLUMNS, type EventRow, eventOf, joinEvent } from '../delivery-rows.ts'

/** What the background and the provider's answers do to the database. Each step is atomic within its transaction. */
export type Step =
  | { readonly do: 'begin'; readonly contactId: string; readonly provider: string }
  | { readonly do: 'begin due'; readonly provider: string; readonly most: number; readonly early: boolean }
  | { readonly do: 'conclude'; readonly contactId: string; readonly token: string; readonly conclusion: Conclusion }
  | { readonly do: 'hasten' }
  | { readonly do: 'claim'; readonly destination: string; readonly most: number }
  | { readonly do: 'settle'; readonly number: number; readonly token: string; readonly settlement: Settlement }

/** The answer to each step, in the same order. */
export interface Results {
  readonly begin: Beginning
  readonly 'begin due': readonly Registration[]
  readonly conclude: boolean
  /** Whether there may be more to hasten. */
  readonly hasten: boolean
  readonly claim: readonly Delivery[]
  readonly settle: boolean
}
export type Result = Results[Step['do']]

/** Contacts that one step hastens: an outage can leave a million, and signups must get between. */
const HASTENED = 5_000

/** Stands before the id of a contact that is known and still pending, in the answer to a batch of signups. */
export const STILL_PENDING = '='

/** Steps that lead to a call to the outside: they are not begun when their end might not be stored. */
export const leadsOutside = (step: Step): boolean =>
  step.do === 'begin' || step.do === 'begin due' || step.do === 'claim'

interface PendingRow {
  readonly number: number
  readonly id: string
  readonly name: string
  readonly email: string
  readonly created_at: number
  readonly provider: string | null
  readonly attempts: number
  readonly doubt: number
  readonly due_at: number
  readonly token: string | null
}

interface DeliveryRow extends EventRow {
  readonly number: number
  readonly attempts: number
  readonly doubt: number
  readonly token: string | null
}

const PENDING =
  'select contact.number, id, name, email, created_at, provider, attempts, doubt, due_at, token' +
  ' from registration join contact on contact.number = registration.contact'

/** Lists a contact for good: its event and its deliveries are born in the same transaction. */
export type Announce = (contact: number | bigint, now: number) => void

export function announcing(database: DatabaseSync, eventName: string, destinations: readonly string[]): Announce {
  const insertEvent = database.prepare('insert into event (contact, name, created_at) values (?, ?, ?)')
  const insertDelivery = database.prepare('insert into delivery (contact, destination, due_at) values (?, ?, ?)')
  return (contact, now) => {
    insertEvent.run(contact, eventName, now)
    for (const destination of destinations) insertDelivery.run(contact, destination, now)
  }
}

/** The two ends of a pending contact: on the list, or off it. */
export function endingPending(database: DatabaseSync) {
  const forget = database.prepare('delete from registration where contact = ?')
  const listed = database.prepare("update contact set state = 'listed', provider_id = ? where number = ?")
  const removed = database.prepare('delete from contact where number = ?')
  return {
    list(contact: number, providerId: string | undefined): void {
      forget.run(contact)
      listed.run(providerId ?? null, contact)
    },
    remove(contact: number): void {
      forget.run(contact)
      removed.run(contact)
    },
  }
}

/** Prepares the statements and returns what carries out one step inside an open transaction. */
export function steps(database: DatabaseSync, announce: Announce): (step: Step, now: number) => Result {
  const pendingById = database.prepare(`${PENDING} where id = ?`)
  const isKnown = database.prepare('select 1 from contact where id = ?')
  const duePending = database.prepare(`${PENDING} where due_at <= ? order by due_at limit ?`)
  // A lease that is not over is a row with a token and a due time that is still to come.
  const anyPending = database.prepare(`${PENDING} where due_at <= ? or token is null order by due_at limit ?`)
  const lease = database.prepare(
    'update registration set token = ?, due_at = ?, doubt = 1, attempts = attempts + 1, provider = ? where contact = ?',
  )
  const held = database.prepare(
    'select number from registration join contact on number = contact where id = ? and token = ?',
  )
  const postpone = database.prepare(
    'update registration set token = null, due_at = ?, doubt = ?, why = ?, attempts = attempts - ? where contact = ?',
  )
  const { list, remove } = endingPending(database)
  const hasten = database.prepare(
    'update registration set due_at = ? where contact in' +
      ' (select contact from registration where token is null and due_at > ? order by due_at limit ?)',
  )
  const dueDeliveries = database.prepare(
    `select delivery.number, attempts, doubt, token, ${EVENT_COLUMNS} from delivery ${joinEvent()}` +
      " where destination = ? and delivery.state = 'waiting' and due_at <= ? order by due_at limit ?",
  )
  const leaseDelivery = database.prepare(
    'update delivery set token = ?, due_at = ?, attempts = attempts + 1 where number = ?',
  )
  const settleDelivery = database.prepare(
    'update delivery set token = null, state = ?, due_at = ?, doubt = ?, why = ?, settled_at = ?, attempts = attempts - ?' +
      ' where number = ? and token = ?',
  )

  function leased(row: PendingRow, provider: string, now: number): Registration {
    const token = randomUUID()
    lease.run(token, now + LEASE, provider, row.number)
    const { id, name, email, attempts } = row
    const doubt = row.doubt === 1 && row.provider === provider
    return {
      contact: { id, name, email, state: 'pending', createdAt: new Date(row.created_at) },
      token,
      doubt,
      attempts,
    }
  }

  function begin(contactId: string, provider: string, now: number): Beginning {
    const row = pendingById.get(contactId) as PendingRow | undefined
    if (row === undefined) return isKnown.get(contactId) === undefined ? { is: 'gone' } : { is: 'listed' }
    if (row.token !== null && row.due_at > now) return { is: 'taken' }
    return { is: 'ours', registration: leased(row, provider, now) }
  }

  function conclude(contactId: string, token: string, conclusion: Conclusion, now: number): boolean {
    const row = held.get(contactId, token) as { number: number } | undefined
    if (row === undefined) return false
    const { number } = row
    if (conclusion.is === 'pending') {
      postpone.run(
        Math.round(now + conclusion.wait),
        conclusion.doubt ? 1 : 0,
        conclusion.why,
        conclusion.uncalled ? 1 : 0,
        number,
      )
      return true
    }
    if (conclusion.is === 'refused') remove(number)
    else list(number, conclusion.providerId)
    if (conclusion.is === 'created') announce(number, now)
    return true
  }

  function claim(destination: string, most: number, now: number): Delivery[] {
    return (dueDeliveries.all(destination, now, most) as unknown as DeliveryRow[]).map(row => {
      const token = randomUUID()
      leaseDelivery.run(token, now + LEASE, row.number)
      const { number, attempts } = row
      // Still leased when it is due again: whoever had it died with the outcome.
      return { number, token, event: eventOf(row), attempts, doubt: row.doubt === 1 || row.token !== null }
    })
  }

  function settle(number: number, token: string, settlement: Settlement, now: number): boolean {
    const waiting = settlement.is === 'waiting'
    const { changes } = settleDelivery.run(
      settlement.is,
      waiting ? Math.round(now + settlement.wait) : now,
      waiting && settlement.doubt ? 1 : 0,
      'why' in settlement ? settlement.why : null,
      waiting ? null : now,
      waiting && settlement.uncalled ? 1 : 0,
      number,
      token,
    )
    return changes === 1
  }

  return (step, now) => {
    switch (step.do) {
      case 'begin':
        return begin(step.contactId, step.provider, now)
      case 'begin due': {
        const rows = (step.early ? anyPending : duePending).all(now, step.most) as unknown as PendingRow[]
        return rows.map(row => leased(row, step.provider, now))
      }
      case 'conclude':
        return conclude(step.contactId, step.token, step.conclusion, now)
      case 'hasten':
        return hasten.run(now, now, HASTENED).changes === HASTENED
      case 'claim':
        return claim(step.destination, step.most, now)
      case 'settle':
        return settle(step.number, step.token, step.settlement, now)
    }
  }
}

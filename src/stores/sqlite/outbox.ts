import { randomUUID } from 'node:crypto'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { type Delivery, LEASE, type Settlement } from '../../waitlist/ports.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf, FARTHEST } from '../deliveries.ts'
import { listing, type Surroundings } from './signups.ts'

/** The steps of deliveries. Each is atomic within its transaction. */
export type Step =
  | { readonly do: 'claim'; readonly destination: string; readonly most: number; readonly contact: number | undefined }
  | { readonly do: 'settle'; readonly number: number; readonly token: string; readonly settlement: Settlement }

/** The answer to each step, in the same order. */
export interface Results {
  readonly claim: readonly Delivery[]
  readonly settle: boolean
}
export type Result = Results[Step['do']]

interface DeliveryRow extends ContactRow {
  readonly number: number
  readonly attempts: number
  readonly doubt: number
  readonly token: string | null
}

/** Prepares the statements, and returns the function that does one step inside an open transaction. */
export function stepping(database: DatabaseSync, surroundings: Surroundings): (step: Step, now: number) => Result {
  /** The provider gets pending contacts, the others those with an event. Any other row was made by hand. */
  const claimable = (which: string, index = '') =>
    database.prepare(
      `select delivery.number, attempts, doubt, token, ${CONTACT_COLUMNS}` +
        ` from delivery ${index} join contact on contact.number = delivery.contact` +
        ` where destination = ? and delivery.state = 'waiting' and ${which}` +
        " and case when destination is ? then contact.state = 'pending' else event_at is not null end order by due_at limit ?",
    )
  /** A row is in one of them at most. The last two are empty unless the clock was set back. */
  const due = [
    { rows: claimable('due_at <= ?'), ahead: 0 },
    { rows: claimable('due_at > ? and token is null', 'indexed by delivery_due'), ahead: FARTHEST.due },
    { rows: claimable('due_at > ? and token is not null', 'indexed by delivery_leased'), ahead: FARTHEST.lease },
  ]
  // A lease holds while there is a token and the due time lies ahead, but not too far.
  const ofContact = claimable('(due_at <= ? or due_at > ? or token is null) and contact = ?')
  const lease = database.prepare(
    'update delivery set token = ?, due_at = ?, doubt = ?, attempts = attempts + 1 where number = ?',
  )
  const held = database.prepare('select contact from delivery where number = ? and token = ?')
  const settleRow = database.prepare(
    'update delivery set token = null, state = ?, due_at = ?, doubt = ?, why = ?, settled_at = ?, attempts = attempts - ?' +
      ' where number = ?',
  )
  const remove = database.prepare("delete from contact where number = ? and state = 'pending'")
  const list = listing(database, surroundings)

  function claim({ destination, most, contact }: Step & { do: 'claim' }, now: number): Delivery[] {
    const { provider } = surroundings
    const rows: DeliveryRow[] = []
    const take = (statement: StatementSync, ...values: SQLInputValue[]) =>
      rows.push(...(statement.all(destination, ...values, provider, most - rows.length) as unknown as DeliveryRow[]))
    if (contact !== undefined) take(ofContact, now, now + FARTHEST.lease, contact)
    else for (const { rows: found, ahead } of due) if (rows.length < most) take(found, now + ahead)
    return rows.map(row => {
      const token = randomUUID()
      // A row that is due and still has a token was held by a process that died with the outcome.
      const doubt = row.doubt === 1 || row.token !== null
      lease.run(token, now + LEASE, doubt ? 1 : 0, row.number)
      return { number: row.number, token, contact: contactOf(row), attempts: row.attempts, doubt }
    })
  }

  function settle({ number, token, settlement }: Step & { do: 'settle' }, now: number): boolean {
    const row = held.get(number, token) as { contact: number } | undefined
    if (row === undefined) return false
    switch (settlement.is) {
      case 'listed':
        list(row.contact, settlement.joined, settlement.providerId, now)
        return true
      case 'removed':
        remove.run(row.contact)
        return true
      case 'waiting': {
        const { wait, doubt, why, uncounted } = settlement
        settleRow.run('waiting', Math.round(now + wait), doubt ? 1 : 0, why, null, uncounted ? 1 : 0, number)
        return true
      }
      default:
        settleRow.run(settlement.is, now, 0, settlement.is === 'abandoned' ? settlement.why : null, now, 0, number)
        return true
    }
  }

  return (step, now) => (step.do === 'claim' ? claim(step, now) : settle(step, now))
}

import {
  type Contact,
  type DeliveryKind,
  type DeliveryRecord,
  type DeliveryState,
  emailKey,
  eventId,
} from '../signup/contact.ts'
import { forEachPage } from './bulk.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf } from './contacts.ts'
import type { Database, Tx, Value } from './database.ts'
import { erasedAt } from './erasures.ts'

/** The columns that a query must return for a delivery, to show it to the operator. */
const RECORD_COLUMNS =
  'delivery.number, delivery.destination, delivery.kind, delivery.state, delivery.attempts, delivery.due_at, delivery.why,' +
  ' delivery.settled_at'

interface RecordRow extends Pick<ContactRow, 'id'> {
  readonly number: number
  readonly destination: string
  readonly kind: DeliveryKind
  readonly state: DeliveryState
  readonly attempts: number
  readonly due_at: number
  readonly why: string | null
  readonly settled_at: number | null
}

function recordOf(row: RecordRow): DeliveryRecord {
  const { number, id, kind, destination, state, attempts, due_at, why, settled_at } = row
  return {
    number,
    contactId: id,
    eventId: kind === 'joined' || kind === 'invited' ? eventId({ id }, kind) : null,
    kind,
    destination,
    state,
    attempts,
    due: new Date(due_at),
    why,
    settledAt: settled_at === null ? null : new Date(settled_at),
  }
}

/** Deliveries, as the operator sees and replays them. */

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined
  readonly destination?: string | undefined
}

/** What is stored about an address. Somebody who was erased may have come back since. */
export interface Person {
  readonly contact: Contact | undefined
  /** Those of the contact, the oldest first. */
  readonly deliveries: readonly DeliveryRecord[]
  readonly erasedAt: Date | undefined
}

export async function personOf(tx: Tx, email: string): Promise<Person> {
  const key = emailKey(email)
  const [contact] = await tx.all<ContactRow>(`select ${CONTACT_COLUMNS} from contact where email_key = $1`, [key])
  const deliveries = await tx.all<RecordRow>(
    `select id, ${RECORD_COLUMNS} from contact join delivery on delivery.contact = contact.number` +
      ' where email_key = $1 order by delivery.number',
    [key],
  )
  return {
    contact: contact && contactOf(contact),
    deliveries: deliveries.map(recordOf),
    erasedAt: (await erasedAt(tx, [email])).get(key),
  }
}

/** The newest first, with the addresses of their contacts. */
export async function listDeliveries(
  tx: Tx,
  { state, destination }: DeliveryFilter,
  limit: number,
): Promise<readonly (DeliveryRecord & { readonly email: string })[]> {
  const values: Value[] = []
  const bind = (value: Value) => `$${values.push(value)}`
  const conditions = [
    // Not a parameter, so that the index on that state is used.
    state !== undefined && `delivery.state = '${state}'`,
    destination !== undefined && `destination = ${bind(destination)}`,
  ].filter(each => each !== false)
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  const rows = await tx.all<RecordRow & Pick<ContactRow, 'email'>>(
    `select id, email, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact${where}` +
      ` order by delivery.number desc limit ${bind(limit)}`,
    values,
  )
  return rows.map(row => ({ ...recordOf(row), email: row.email }))
}

/**
 * Makes deliveries new and due. That clears their doubt, which is the operator's decision; only hand-overs keep it, since the
 * provider can resolve it.
 */
const RENEW =
  "update delivery set state = 'waiting', due_at = $2, attempts = 0, why = null, settled_at = null, token = null," +
  " doubt = case when kind = 'handover' and (doubt = 1 or token is not null) then 1 else 0 end"

/** Returns the numbers of those that were replayed: one that is in flight is left alone, or it would be attempted twice at once. */
export async function replay(tx: Tx, numbers: readonly number[]): Promise<readonly number[]> {
  const rows = await tx.all<{ number: number }>(
    `${RENEW} where ${tx.dialect.among('number', '$1')} and (token is null or due_at <= $2) returning number`,
    [numbers, tx.now],
  )
  return rows.map(({ number }) => number)
}

/** The same for all that were abandoned, in short steps, so that signups do not wait. Returns how many there were. */
export const replayAbandoned = (database: Database, destination: string | undefined): Promise<number> => {
  const which = `state = 'abandoned' ${destination === undefined ? '' : 'and destination = $3'}`
  const values = destination === undefined ? [] : [destination]
  return forEachPage(database, {
    page: async (tx, above, limit) => {
      const rows = await tx.all<{ number: number }>(
        `select number from delivery where number > $1 and ${which} order by number limit $2`,
        [above, limit, ...values],
      )
      return rows.map(({ number }) => number)
    },
    change: (tx, numbers) =>
      tx.run(`${RENEW} where ${tx.dialect.among('number', '$1')} and state = 'abandoned'`, [numbers, tx.now]),
  })
}

/** Deletes up to `most` of those that were delivered before then, and proofs that expired. Returns how many. */
export const deleteDelivered = (tx: Tx, before: number, most: number): Promise<number> =>
  tx.run(
    "delete from delivery where number in (select number from delivery where state = 'delivered' and settled_at < $1" +
      " and kind <> 'confirmation' limit $2)",
    [before, most],
  )

/** Deletes up to `most` solved challenges that have expired. */
export const deleteExpiredProofs = (tx: Tx, before: number, most: number): Promise<number> =>
  tx.run('delete from proof where nonce in (select nonce from proof where expires_at < $1 limit $2)', [before, most])

import type { DeliveryRecord, DeliveryState } from '../signup/contact.ts'
import { forEachPage } from './bulk.ts'
import type { Database, Tx, Value } from './database.ts'
import { type ContactRow, RECORD_COLUMNS, type RecordRow, recordOf } from './rows.ts'

/** Deliveries, as the operator sees and replays them. */

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined
  readonly destination?: string | undefined
}

/** The newest first, with the addresses of their contacts. */
export async function listDeliveries(
  tx: Tx,
  { state, destination }: DeliveryFilter,
  limit: number,
): Promise<readonly (DeliveryRecord & { readonly email: string })[]> {
  const values: Value[] = []
  const given = (value: Value) => `$${values.push(value)}`
  const conditions = [
    // Not a parameter, so that the index on that state is used.
    state !== undefined && `delivery.state = '${state}'`,
    destination !== undefined && `destination = ${given(destination)}`,
  ].filter(each => each !== false)
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  const rows = await tx.all<RecordRow & Pick<ContactRow, 'email'>>(
    `select id, email, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact${where}` +
      ` order by delivery.number desc limit ${given(limit)}`,
    values,
  )
  return rows.map(row => ({ ...recordOf(row), email: row.email }))
}

/** The result of a replay. The numbers in `inFlight` are leased now; those in `unknown` do not exist. */
export interface Replay {
  readonly replayed: number
  readonly inFlight: readonly number[]
  readonly unknown: readonly number[]
}

/**
 * Makes deliveries new and due. That clears their doubt, which is the operator's decision; only hand-overs keep it, since the
 * provider can resolve it.
 */
const RENEW =
  "update delivery set state = 'waiting', due_at = $2, attempts = 0, why = null, settled_at = null, token = null," +
  " doubt = case when kind = 'handover' and (doubt = 1 or token is not null) then 1 else 0 end"

/** A delivery that is in flight is left alone, or it would be attempted twice at once. */
export async function replay(tx: Tx, numbers: readonly number[]): Promise<Replay> {
  const { among } = tx.dialect
  const wanted = [...new Set(numbers)]
  const replayed = await tx.run(`${RENEW} where ${among('number', '$1')} and (token is null or due_at <= $2)`, [
    wanted,
    tx.now,
  ])
  const rows = await tx.all<{ number: number; leased: number }>(
    `select number, case when token is null then 0 else 1 end as leased from delivery where ${among('number', '$1')}`,
    [wanted],
  )
  return {
    replayed,
    inFlight: rows.filter(({ leased }) => leased === 1).map(({ number }) => number),
    unknown: wanted.filter(number => !rows.some(row => row.number === number)),
  }
}

/** The same for all that were abandoned, in short steps, so that signups do not wait. Returns how many there were. */
export const replayAbandoned = (database: Database, destination: string | undefined): Promise<number> => {
  const which = `state = 'abandoned' ${destination === undefined ? '' : 'and destination = $3'}`
  const given = destination === undefined ? [] : [destination]
  return forEachPage(database, {
    page: async (tx, above, limit) => {
      const rows = await tx.all<{ number: number }>(
        `select number from delivery where number > $1 and ${which} order by number limit $2`,
        [above, limit, ...given],
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

/** What an operator asks of the deliveries in a database file, beside the service that uses it. */

import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { DeliveryRecord } from '../../waitlist/contact.ts'
import { CannotOpen } from '../../waitlist/ports.ts'
import {
  EVENT_COLUMNS,
  type EventRow,
  eventOf,
  joinEvent,
  RECORD_COLUMNS,
  type RecordRow,
  recordOf,
} from '../delivery-rows.ts'
import type { Backlog, Delivered, DeliveryFilter, Replay, ReplayWish } from '../records.ts'
import { openForReading } from './reader.ts'

/** The newest first. */
export function listDeliveries(path: string, { state, destination, limit }: DeliveryFilter): DeliveryRecord[] {
  const conditions = [
    // Written out, so that the indexes for one state are used.
    ...(state === undefined ? [] : [`delivery.state = '${state}'`]),
    ...(destination === undefined ? [] : ['destination = ?']),
  ]
  const sql =
    `select id, ${RECORD_COLUMNS}` +
    ' from delivery join contact on contact.number = delivery.contact' +
    (conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`) +
    ' order by delivery.number desc limit ?'
  const values = destination === undefined ? [limit] : [destination, limit]
  return lend(path, openForReading(path), database =>
    (database.prepare(sql).all(...values) as unknown as RecordRow[]).map(recordOf),
  )
}

/** One delivery with its event; undefined when there is none with this number. */
export function showDelivery(path: string, number: number): Delivered | undefined {
  const sql = `select ${RECORD_COLUMNS}, ${EVENT_COLUMNS} from delivery ${joinEvent()} where delivery.number = ?`
  return lend(path, openForReading(path), database => {
    const row = database.prepare(sql).get(number) as (RecordRow & EventRow) | undefined
    return row && { record: recordOf(row), event: eventOf(row) }
  })
}

const RENEW =
  "update delivery set state = 'waiting', due_at = ?, attempts = 0, doubt = 0, token = null, why = null," +
  ' settled_at = null where'

/** Deliveries in one transaction, so that signups get between. */
const AT_ONCE = 5_000

export function replayDeliveries(path: string, wish: ReplayWish, now = Date.now()): Replay {
  return lend(path, openForWriting(path), database =>
    'numbers' in wish ? renewSome(database, wish.numbers, now) : renewAbandoned(database, wish.destination, now),
  )
}

function renewSome(database: DatabaseSync, numbers: readonly number[], now: number): Replay {
  const renew = database.prepare(`${RENEW} number = ? and (token is null or due_at <= ?)`)
  const exists = database.prepare('select 1 from delivery where number = ?')
  const wanted = [...new Set(numbers)]
  database.exec('begin immediate')
  const left = wanted.filter(number => renew.run(now, number, now).changes === 0)
  const underWay = left.filter(number => exists.get(number) !== undefined)
  database.exec('commit')
  const unknown = left.filter(number => !underWay.includes(number))
  return { replayed: wanted.length - left.length, underWay, unknown }
}

function renewAbandoned(database: DatabaseSync, destination: string | undefined, now: number): Replay {
  const renew = database.prepare(
    `${RENEW} number in (select number from delivery where state = 'abandoned' and number > ?` +
      `${destination === undefined ? '' : ' and destination = ?'} order by number limit ${AT_ONCE}) returning number`,
  )
  let replayed = 0
  // Upwards, so that it ends, even if what is replayed is abandoned again at once.
  for (let last = 0; ; ) {
    const values = destination === undefined ? [now, last] : [now, last, destination]
    const renewed = renew.all(...values) as unknown as { number: number }[]
    replayed += renewed.length
    if (renewed.length < AT_ONCE) return { replayed, underWay: [], unknown: [] }
    last = renewed.reduce((most, { number }) => Math.max(most, number), last)
  }
}

/** Nothing without a file. */
export function backlog(path: string): Backlog {
  if (!existsSync(path)) return { pending: 0, waiting: {}, abandoned: 0 }
  return lend(path, openForReading(path), database => {
    const count = (rows: string) => (database.prepare(`select count(*) as n from ${rows}`).get() as { n: number }).n
    const waiting = database
      .prepare("select destination, count(*) as n from delivery where state = 'waiting' group by destination")
      .all() as { destination: string; n: number }[]
    return {
      pending: count('registration'),
      waiting: Object.fromEntries(waiting.map(({ destination, n }) => [destination, n])),
      abandoned: count("delivery where state = 'abandoned'"),
    }
  })
}

/** Opening for writing makes a file where there is none: opening for reading refuses that, in words. */
function openForWriting(path: string): DatabaseSync {
  openForReading(path).close()
  return new DatabaseSync(path, { timeout: 5000 })
}

/** @throws {CannotOpen} when the file has no deliveries or cannot be used. */
function lend<T>(path: string, database: DatabaseSync, use: (database: DatabaseSync) => T): T {
  try {
    if (database.prepare("select 1 from sqlite_schema where name = 'delivery'").get() === undefined) {
      throw new Error('it has no deliveries. The service upgrades a database of an older Waitlist when it starts')
    }
    return use(database)
  } catch (error) {
    throw new CannotOpen(`${path} cannot be used: ${(error as Error).message}`)
  } finally {
    database.close()
  }
}

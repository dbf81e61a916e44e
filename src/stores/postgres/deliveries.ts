/** What an operator asks of the deliveries in a PostgreSQL database, beside the services that use it. */

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
import type { Postgres, Statement } from './client.ts'
import { withPostgres } from './reader.ts'

/** The newest first. */
export function listPostgresDeliveries(url: string, filter: DeliveryFilter): Promise<readonly DeliveryRecord[]> {
  const { state = null, destination = null, limit } = filter
  const text =
    `select id, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    ' where ($1::text is null or delivery.state = $1) and ($2::text is null or destination = $2)' +
    ' order by delivery.number desc limit $3'
  return withPostgres(url, async database => {
    const rows = await database.run<RecordRow>(() => ({ text, values: [state, destination, limit] }))
    return rows.map(recordOf)
  })
}

/** One delivery with its event; undefined when there is none with this number. */
export function showPostgresDelivery(url: string, number: number): Promise<Delivered | undefined> {
  const text = `select ${RECORD_COLUMNS}, ${EVENT_COLUMNS} from delivery ${joinEvent()} where delivery.number = $1`
  return withPostgres(url, async database => {
    const [row] = await database.run<RecordRow & EventRow>(() => ({ text, values: [number] }))
    return row && { record: recordOf(row), event: eventOf(row) }
  })
}

const RENEW =
  "update delivery set state = 'waiting', due_at = now(), attempts = 0, doubt = false, token = null, why = null, settled_at = null"

/** Deliveries in one statement, well within its timeout. */
const AT_ONCE = 5_000

/** Not tried again: a second try would not know what the first one had renewed. */
const once =
  ({ attempt }: Postgres) =>
  <Row>(statement: Statement<Row>): Promise<readonly Row[]> =>
    attempt((query, again) => {
      if (again)
        throw new CannotOpen('The connection was lost before the answer came. Some may be due now: run it again.')
      return query(statement)
    })

export function replayPostgresDeliveries(url: string, wish: ReplayWish): Promise<Replay> {
  return withPostgres(url, async database => {
    if ('numbers' in wish) {
      const wanted = [...new Set(wish.numbers)]
      const text = `${RENEW} where number = any($1::bigint[]) and (token is null or due_at <= now()) returning number`
      const renewed = await once(database)<{ number: string }>({ text, values: [wanted] })
      const done = new Set(renewed.map(({ number }) => Number(number)))
      const left = wanted.filter(number => !done.has(number))
      const there = await database.run<{ number: string }>(() => {
        return { text: 'select number from delivery where number = any($1::bigint[])', values: [left] }
      })
      const underWay = there.map(({ number }) => Number(number))
      return { replayed: done.size, underWay, unknown: left.filter(number => !underWay.includes(number)) }
    }
    return renewAbandoned(database, wish.destination ?? null)
  })
}

/** Upwards and in parts, so that it ends, even if what is replayed is abandoned again at once. */
async function renewAbandoned(database: Postgres, destination: string | null): Promise<Replay> {
  const text =
    `${RENEW} where number in (select number from delivery where state = 'abandoned' and number > $1` +
    ` and ($2::text is null or destination = $2) order by number limit ${AT_ONCE}) returning number`
  for (let replayed = 0, last = 0; ; ) {
    const renewed = await once(database)<{ number: string }>({ text, values: [last, destination] })
    replayed += renewed.length
    if (renewed.length < AT_ONCE) return { replayed, underWay: [], unknown: [] }
    last = renewed.reduce((most, { number }) => Math.max(most, Number(number)), last)
  }
}

export function postgresBacklog(url: string): Promise<Backlog> {
  const text =
    'select (select count(*)::int from registration) as pending,' +
    " (select count(*)::int from delivery where state = 'abandoned') as abandoned, (select" +
    " coalesce(json_object_agg(destination, n), '{}') from (select destination, count(*)::int as n from delivery" +
    " where state = 'waiting' group by destination) as each) as waiting"
  return withPostgres(url, async database => {
    const [row] = await database.run<Backlog>(() => ({ text, values: [] }))
    return row!
  })
}

import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { DeliveryRecord } from '../../../waitlist/rules/contact.ts'
import {
  CONTACT_COLUMNS,
  type ContactRow,
  contactOf,
  FARTHEST_LEASE,
  RECORD_COLUMNS,
  type RecordRow,
  recordOf,
} from '../../deliveries.ts'
import {
  type Backlog,
  type ContactDelivery,
  type Deliveries,
  type DeliveryFilter,
  NO_BACKLOG,
  type Replay,
  type ReplayProgress,
  type ReplayWish,
  renew,
} from '../../operator/deliveries.ts'
import { inSteps } from '../../steps.ts'
import { lend, openForReading, openForWriting } from './open.ts'

export const deliveries = (path: string): Deliveries => ({
  deliveries: async filter => listDeliveries(path, filter),
  delivery: async number => showDelivery(path, number),
  replay: async (wish, progress) => replay(path, wish, Date.now(), progress),
  backlog: () => backlog(path),
})

function listDeliveries(
  path: string,
  { state, destination, limit }: DeliveryFilter,
): Promise<readonly DeliveryRecord[]> {
  const conditions: string[] = []
  // Not a parameter, so that the partial indexes for one state are used.
  if (state !== undefined) conditions.push(`delivery.state = '${state}'`)
  if (destination !== undefined) conditions.push('destination = ?')
  const sql =
    `select id, event_name, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    (conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`) +
    ' order by delivery.number desc limit ?'
  const values = destination === undefined ? [limit] : [destination, limit]
  return lend(path, openForReading(path), database =>
    (database.prepare(sql).all(...values) as unknown as RecordRow[]).map(recordOf),
  )
}

function showDelivery(path: string, number: number): Promise<ContactDelivery | undefined> {
  const sql =
    `select ${RECORD_COLUMNS}, ${CONTACT_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    ' where delivery.number = ?'
  return lend(path, openForReading(path), database => {
    const row = database.prepare(sql).get(number) as (RecordRow & ContactRow) | undefined
    return row && { record: recordOf(row), contact: contactOf(row) }
  })
}

function replay(path: string, wish: ReplayWish, now: number, progress?: ReplayProgress): Promise<Replay> {
  return lend(path, openForWriting(path), database =>
    'numbers' in wish
      ? renewSome(database, wish.numbers, now)
      : renewAbandoned(database, wish.destination ?? null, now, progress),
  )
}

function renewSome(database: DatabaseSync, numbers: readonly number[], now: number): Replay {
  const update = database.prepare(`${renew('?')} where number = ? and (token is null or due_at <= ? or due_at > ?)`)
  const exists = database.prepare('select 1 from delivery where number = ?')
  const wanted = [...new Set(numbers)]
  database.exec('begin immediate')
  const left = wanted.filter(number => update.run(now, number, now, now + FARTHEST_LEASE).changes === 0)
  const underWay = left.filter(number => exists.get(number) !== undefined)
  database.exec('commit')
  const unknown = left.filter(number => !underWay.includes(number))
  return { replayed: wanted.length - left.length, underWay, unknown }
}

async function renewAbandoned(
  database: DatabaseSync,
  destination: string | null,
  now: number,
  progress: ReplayProgress = () => {},
): Promise<Replay> {
  const count = database.prepare("select count(*) as total from delivery where state = 'abandoned'")
  // Apart from the change, since it needs no lock. Those to other destinations are looked at too, so each step is short.
  const page = database.prepare(
    'select max(number) as last, count(*) as count from' +
      " (select number from delivery where state = 'abandoned' and number > ? order by number limit ?)",
  )
  const update = database.prepare(
    `${renew('?')} where state = 'abandoned' and number > ? and number <= ? and (? is null or destination = ?)`,
  )
  const { total } = count.get() as { total: number }
  let [done, replayed, last] = [0, 0, 0]
  // By ascending number, so that it ends even if replayed deliveries are abandoned again at once.
  await inSteps(most => {
    const next = page.get(last, most) as { last: number | null; count: number }
    if (next.last === null) return false
    replayed += Number(update.run(now, last, next.last, destination, destination).changes)
    last = next.last
    done += next.count
    progress(done, total)
    return next.count === most
  })
  return { replayed, underWay: [], unknown: [] }
}

/** Empty without a file, or without tables in it. */
async function backlog(path: string): Promise<Backlog> {
  if (!existsSync(path)) return NO_BACKLOG
  return lend(path, openForReading(path), database => {
    if (database.prepare("select 1 from sqlite_schema where name = 'delivery'").get() === undefined) return NO_BACKLOG
    const count = (rows: string) => (database.prepare(`select count(*) as n from ${rows}`).get() as { n: number }).n
    const waiting = database
      .prepare(
        'select destination, count(*) as count, (select why from delivery as other' +
          " where other.state = 'waiting' and other.destination = delivery.destination and why is not null" +
          " order by due_at desc limit 1) as why from delivery where state = 'waiting' group by destination",
      )
      .all() as { destination: string; count: number; why: string | null }[]
    return {
      pending: count("contact where state = 'pending'"),
      waiting: Object.fromEntries(waiting.map(({ destination, count, why }) => [destination, { count, why }])),
      abandoned: count("delivery where state = 'abandoned'"),
    }
  })
}

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
import type { Postgres } from '../client.ts'
import { lend, once } from './open.ts'

export const deliveries = (url: string): Deliveries => ({
  deliveries: filter => listDeliveries(url, filter),
  delivery: number => showDelivery(url, number),
  replay: (wish, progress) => replay(url, wish, progress),
  backlog: () => backlog(url),
})

function listDeliveries(url: string, filter: DeliveryFilter): Promise<readonly DeliveryRecord[]> {
  const { state = null, destination = null, limit } = filter
  const text =
    `select id, event_name, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    ' where ($1::text is null or delivery.state = $1) and ($2::text is null or destination = $2)' +
    ' order by delivery.number desc limit $3'
  return lend(url, async ({ run }) => (await run<RecordRow>(text, [state, destination, limit])).map(recordOf))
}

function showDelivery(url: string, number: number): Promise<ContactDelivery | undefined> {
  const text =
    `select ${RECORD_COLUMNS}, ${CONTACT_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    ' where delivery.number = $1'
  return lend(url, async ({ run }) => {
    const [row] = await run<RecordRow & ContactRow>(text, [number])
    return row && { record: recordOf(row), contact: contactOf(row) }
  })
}

function replay(url: string, wish: ReplayWish, progress?: ReplayProgress): Promise<Replay> {
  return lend(url, database =>
    'numbers' in wish
      ? renewSome(database, wish.numbers)
      : renewAbandoned(database, wish.destination ?? null, progress),
  )
}

async function renewSome(database: Postgres, numbers: readonly number[]): Promise<Replay> {
  const wanted = [...new Set(numbers)]
  const tooFar = `due_at > now() + ${FARTHEST_LEASE} * interval '1 millisecond'`
  const text = `${renew('now()')} where number = any($1::bigint[]) and (token is null or due_at <= now() or ${tooFar}) returning number`
  const renewed = await once(database)<{ number: string }>(text, [wanted])
  const done = new Set(renewed.map(({ number }) => Number(number)))
  const left = wanted.filter(number => !done.has(number))
  const there = await database.run<{ number: string }>('select number from delivery where number = any($1::bigint[])', [
    left,
  ])
  const underWay = there.map(({ number }) => Number(number))
  return { replayed: done.size, underWay, unknown: left.filter(number => !underWay.includes(number)) }
}

async function renewAbandoned(
  database: Postgres,
  destination: string | null,
  progress: ReplayProgress = () => {},
): Promise<Replay> {
  const count = "select count(*)::int as total from delivery where state = 'abandoned'"
  // Those to other destinations are looked at too, so that each step is short.
  const step =
    "with page as (select number, destination from delivery where state = 'abandoned' and number > $1" +
    ` order by number limit $3), renewed as (${renew('now()')} from page where delivery.number = page.number` +
    " and delivery.state = 'abandoned' and ($2::text is null or page.destination = $2) returning 1)" +
    ' select max(number) as last, count(*)::int as count, (select count(*)::int from renewed) as replayed from page'
  const [{ total }] = (await database.run<{ total: number }>(count)) as [{ total: number }]
  let [done, replayed, last] = [0, 0, '0']
  // By ascending number, so that it ends even if replayed deliveries are abandoned again at once.
  await inSteps(async most => {
    const [next] = await once(database)<Page>(step, [last, destination, most])
    if (next?.last == null) return false
    replayed += next.replayed
    last = next.last
    done += next.count
    progress(done, total)
    return next.count === most
  })
  return { replayed, underWay: [], unknown: [] }
}

interface Page {
  readonly last: string | null
  readonly count: number
  readonly replayed: number
}

function backlog(url: string): Promise<Backlog> {
  const counts =
    "select (select count(*)::int from contact where state = 'pending') as pending," +
    " (select count(*)::int from delivery where state = 'abandoned') as abandoned"
  const waiting =
    'select destination, count(*)::int as count, (select why from delivery as other where other.state = delivery.state' +
    ' and other.destination = delivery.destination and why is not null order by due_at desc limit 1) as why' +
    " from delivery where state = 'waiting' group by destination, state"
  return lend(url, async ({ run }) => {
    const [tables] = await run<{ made: boolean }>("select to_regclass('delivery') is not null as made")
    if (!tables?.made) return NO_BACKLOG
    const [row] = await run<Pick<Backlog, 'pending' | 'abandoned'>>(counts)
    const rows = await run<{ destination: string; count: number; why: string | null }>(waiting)
    const entries = rows.map(({ destination, count, why }) => [destination, { count, why }])
    return { ...row!, waiting: Object.fromEntries(entries) }
  })
}

import type { ClientBase } from 'pg'
import type { Contact, ContactState, DeliveryRecord } from '../../waitlist/contact.ts'
import { type Log, OperatorError } from '../../waitlist/ports.ts'
import {
  CONTACT_COLUMNS,
  type ContactRow,
  contactOf,
  FARTHEST_LEASE,
  RECORD_COLUMNS,
  type RecordRow,
  recordOf,
} from '../deliveries.ts'
import { storeName } from '../location.ts'
import {
  type Backlog,
  type ContactDelivery,
  type DeliveryFilter,
  NO_BACKLOG,
  type Operator,
  type Replay,
  type ReplayProgress,
  type ReplayWish,
  renew,
} from '../operator.ts'
import { inSteps } from '../steps.ts'
import { type Postgres, postgres, type Query } from './client.ts'
import { reasonOf } from './errors.ts'
import { isCurrent } from './schema.ts'
import { requireCreation, requireFit, requireRights } from './server.ts'

/** The operator's side of a PostgreSQL database. Each call makes its own connection; services go on meanwhile. */
export const postgresOperator = (url: string): Operator => ({
  contacts: () => readContacts(url),
  deliveries: filter => listDeliveries(url, filter),
  delivery: number => showDelivery(url, number),
  replay: (wish, progress) => replay(url, wish, progress),
  backlog: () => backlog(url),
  look: () => lend(url, ({ lend }) => lend(client => look(client, nameOf(url)))),
  async backUp() {
    throw new OperatorError('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  },
})

const silent: Log = { info() {}, warn() {}, error() {} }

/** Milliseconds for one statement. No visitor waits for it, and tables may be large. */
const STATEMENT = 60_000

const open = (url: string): Postgres => postgres({ url, connections: 1, timeout: STATEMENT, log: silent })

const nameOf = (url: string): string => storeName({ kind: 'postgres', url })

/** @throws {OperatorError} when the database cannot be reached or has no schema that this program knows. */
async function lend<T>(url: string, use: (database: Postgres) => Promise<T>): Promise<T> {
  const database = open(url)
  try {
    await database.lend(client => isCurrent(client, nameOf(url)))
    return await use(database)
  } catch (error) {
    throw cannotUse(url, error)
  } finally {
    await database.close()
  }
}

/** If the tables are missing (42P01), the service has never run on this database. */
function cannotUse(url: string, error: unknown): OperatorError {
  if (error instanceof OperatorError) return error
  const missing = (error as { code?: string }).code === '42P01'
  const why = missing ? 'it has no waitlist. Start the service once, which makes its tables' : reasonOf(error)
  return new OperatorError(`${nameOf(url)} cannot be used: ${why}`)
}

/** A snapshot of all contacts, in the order in which they were stored. Resolves when they can be read. */
async function readContacts(url: string): Promise<AsyncIterable<Contact>> {
  const pages = readPages(url)
  const first = await pages.next()
  return (async function* () {
    try {
      for (let page = first; page.done !== true; page = await pages.next()) yield* page.value
    } finally {
      await pages.return()
    }
  })()
}

interface Row {
  readonly number: string
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: ContactState
  readonly created_at: Date
}

/** Rows in memory at once. */
const AT_ONCE = 5_000

async function* readPages(url: string): AsyncGenerator<readonly Contact[], void> {
  const database = open(url)
  try {
    const { client, release } = await database.borrow()
    try {
      await isCurrent(client, nameOf(url))
      await client.query('begin isolation level repeatable read read only')
      // The reader of an export may be slow.
      await client.query('set local idle_in_transaction_session_timeout = 0')
      for (let last = '0', rows: Row[]; ; last = rows.at(-1)!.number) {
        const text =
          'select number, id, name, email, state, created_at from contact where number > $1 order by number limit $2'
        rows = (await client.query<Row>(text, [last, AT_ONCE])).rows
        yield rows.map(({ number, created_at, ...contact }) => ({ ...contact, createdAt: created_at }))
        if (rows.length < AT_ONCE) break
      }
      await client.query('commit')
    } finally {
      release()
    }
  } catch (error) {
    throw cannotUse(url, error)
  } finally {
    await database.close()
  }
}

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

/** Not tried again: a second try would not know what the first one has replayed. */
const once =
  ({ attempt }: Postgres): Query =>
  (text, values) =>
    attempt((query, again) => {
      if (again)
        throw new OperatorError('The connection was lost before the answer came. Some may be due now: run it again.')
      return query(text, values)
    })

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

/** The same checks as at a start. */
async function look(client: ClientBase, database: string): Promise<string> {
  await requireFit(client, database)
  const current = await isCurrent(client, database)
  await (current ? requireRights : requireCreation)(client, database)
  const { rows } = await client.query("select current_setting('server_version') as version")
  return `PostgreSQL ${rows[0].version}${current ? '' : ', in which the tables are made at the first start'}`
}

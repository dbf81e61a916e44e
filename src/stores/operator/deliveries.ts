import { LEASE } from '../../waitlist/ports/outbox.ts'
import type { Contact, DeliveryRecord, DeliveryState } from '../../waitlist/rules/contact.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf, RECORD_COLUMNS, type RecordRow, recordOf } from '../rows.ts'
import { type Dialect, type Engine, inSteps, lend, once, type Progress, type Sql, type Value } from '../sql.ts'

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined
  readonly destination?: string | undefined
  /** The most rows, at least 1. */
  readonly limit: number
}

/** Either deliveries by number, or all abandoned ones. */
export type ReplayWish =
  | { readonly numbers: readonly number[] }
  | { readonly abandoned: true; readonly destination?: string | undefined }

/** The result of a replay. The numbers in `underWay` are leased now; those in `unknown` do not exist. */
export interface Replay {
  readonly replayed: number
  readonly underWay: readonly number[]
  readonly unknown: readonly number[]
}

/** What is not completed. */
export interface Backlog {
  /** Contacts. */
  readonly unconfirmed: number
  readonly pending: number
  /** How many deliveries wait, by destination. */
  readonly waiting: Readonly<Record<string, number>>
  /** Deliveries that were abandoned. */
  readonly abandoned: number
}

/** Deliveries, as the operator sees and replays them. */
export const deliveries = (engine: Engine) => ({
  /** The newest first. */
  deliveries: (filter: DeliveryFilter) => lend(engine, 'reading', sql => listDeliveries(sql, filter)),
  /** One delivery with its contact; undefined if there is none with this number. */
  delivery: (number: number) => lend(engine, 'reading', sql => showDelivery(sql, number)),
  /**
   * Makes deliveries due now, as if they were new. Replaying clears their doubt, which is the operator's decision; only
   * hand-overs keep it, since the provider can resolve it. A delivery that is under way is left alone, or it would be
   * attempted twice at once. It goes in short steps, so that signups do not wait, and what was done stays done if it is
   * stopped. `progress` is called after each step of `abandoned`.
   */
  replay: (wish: ReplayWish, progress?: Progress): Promise<Replay> =>
    lend(engine, 'writing', sql =>
      'numbers' in wish ? renewSome(sql, wish.numbers) : renewAbandoned(sql, wish.destination ?? null, progress),
    ),
  /** Nothing where the first start has yet to make the tables. */
  async backlog(): Promise<Backlog> {
    const opened = await engine.openIfMade()
    return opened === null ? NO_BACKLOG : lend(engine, opened, backlog)
  },
})

async function listDeliveries(
  sql: Sql,
  { state, destination, limit }: DeliveryFilter,
): Promise<readonly DeliveryRecord[]> {
  const values: Value[] = []
  const given = (value: Value) => `$${values.push(value)}`
  const conditions = [
    // Not a parameter, so that the partial indexes for one state are used.
    state !== undefined && `delivery.state = '${state}'`,
    destination !== undefined && `destination = ${given(destination)}`,
  ].filter(each => each !== false)
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  const text =
    `select id, event_name, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact${where}` +
    ` order by delivery.number desc limit ${given(limit)}`
  return (await sql.all<RecordRow>(text, values)).map(recordOf)
}

async function showDelivery(
  sql: Sql,
  number: number,
): Promise<{ readonly record: DeliveryRecord; readonly contact: Contact } | undefined> {
  const text =
    `select ${RECORD_COLUMNS}, ${CONTACT_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    ' where delivery.number = $1'
  const [row] = await sql.all<RecordRow & ContactRow>(text, [number])
  return row && { record: recordOf(row), contact: contactOf(row) }
}

/** Makes deliveries new and due. Only hand-overs keep their doubt. */
const renewing = ({ now }: Dialect): string =>
  `update delivery set state = 'waiting', due_at = ${now}, attempts = 0, token = null, why = null, settled_at = null,` +
  " doubt = (doubt or token is not null) and exists (select 1 from contact where contact.number = delivery.contact and contact.state = 'pending')"

/**
 * Milliseconds ahead of now that a lease may end: one that seems to last longer was taken before the clock was set back.
 * Twice its length, since clocks are also adjusted by a little.
 */
const FARTHEST_LEASE = 2 * LEASE

/** A second try would not know what the first one has replayed. */
const AGAIN = 'Some may be due now: run it again.'

function renewSome(sql: Sql, numbers: readonly number[]): Promise<Replay> {
  const { now, after, among, elements } = sql.dialect
  const isFree = `(token is null or due_at <= ${now} or due_at > ${after(now, String(FARTHEST_LEASE))})`
  const isWanted = among('number', elements('$1', 'whole'))
  const wanted = [...new Set(numbers)]
  return once(sql, AGAIN, async sql => {
    const numbersOf = async (text: string, numbers: readonly number[]) =>
      (await sql.all<{ number: number }>(text, [JSON.stringify(numbers)])).map(({ number }) => number)
    const done = await numbersOf(`${renewing(sql.dialect)} where ${isWanted} and ${isFree} returning number`, wanted)
    const left = wanted.filter(number => !done.includes(number))
    const underWay = await numbersOf(`select number from delivery where ${isWanted}`, left)
    return { replayed: done.length, underWay, unknown: left.filter(number => !underWay.includes(number)) }
  })
}

async function renewAbandoned(sql: Sql, destination: string | null, progress: Progress = () => {}): Promise<Replay> {
  // Apart from the change, since it needs no lock. Those to other destinations are looked at too, so each step is short.
  const page =
    'select max(number) as last, count(*) as count from' +
    " (select number from delivery where state = 'abandoned' and number > $1 order by number limit $2) as page"
  const renew =
    `${renewing(sql.dialect)} where state = 'abandoned' and number > $1 and number <= $2` +
    ' and (cast($3 as text) is null or destination = $3) returning 1'
  let [replayed, last] = [0, 0]
  // By ascending number, so that it ends even if replayed deliveries are abandoned again at once.
  await inSteps(async most => {
    const [next] = await sql.all<{ last: number | null; count: number }>(page, [last, most])
    const upTo = next!.last
    if (upTo === null) return false
    replayed += await once(sql, AGAIN, async sql => (await sql.all(renew, [last, upTo, destination])).length)
    last = upTo
    progress(replayed)
    return next!.count === most
  })
  return { replayed, underWay: [], unknown: [] }
}

const NO_BACKLOG: Backlog = { unconfirmed: 0, pending: 0, waiting: {}, abandoned: 0 }

async function backlog(sql: Sql): Promise<Backlog> {
  const [counts] = await sql.all<Omit<Backlog, 'waiting'>>(
    "select (select count(*) from contact where state = 'unconfirmed') as unconfirmed," +
      " (select count(*) from contact where state = 'pending') as pending," +
      " (select count(*) from delivery where state = 'abandoned') as abandoned",
  )
  const waiting = await sql.all<{ destination: string; count: number }>(
    "select destination, count(*) as count from delivery where state = 'waiting' group by destination",
  )
  return { ...counts!, waiting: Object.fromEntries(waiting.map(({ destination, count }) => [destination, count])) }
}

import type { ContactState, DeliveryState, HoldReason } from '../signup/contact.ts'
import type { Tx } from './database.ts'

/** What a store counts at one moment, by its own clock. Without names and addresses. */
export interface Counts {
  readonly at: Date
  readonly contacts: Readonly<Record<ContactState, number>>
  /** Of those who are invited, how many codes the owner's app took. */
  readonly redeemed: number
  /** Those that are held, the most frequent reason first. */
  readonly held: readonly { readonly reason: HoldReason; readonly count: number }[]
  /** Contacts on the list, so without those that are held or unconfirmed, by the quarter of an hour, in ascending order. */
  readonly signups: readonly Bar[]
  /** Contacts on the list by the label of their source, the 20 largest first; none without a label. */
  readonly sources: readonly { readonly source: string; readonly count: number }[]
  readonly deliveries: readonly DeliveryCount[]
}

/** Signups from then on, until the next one begins. */
export interface Bar {
  readonly from: Date
  readonly count: number
}

/** Milliseconds after which what waits is late: a receiver that restarts is back long before. */
export const LATE = 3_600_000

/** Deliveries to one destination in one state. */
export interface DeliveryCount {
  readonly destination: string
  readonly state: DeliveryState
  readonly count: number
  /** When the contact of the oldest one joined or was invited, or signed up if it is handed over; only of those that wait. */
  readonly oldest: Date | null
  /** How one of the attempts ended; null: none did. */
  readonly why: string | null
}

/** Where most are listed or invited, the indexes on the others count them faster than a look at each. */
export async function countListed(tx: Tx): Promise<number> {
  const [row] = await tx.all<{ listed: number }>(
    "select (select count(*) from contact) - (select count(*) from contact where state = 'pending')" +
      " - (select count(*) from contact where state = 'held')" +
      " - (select count(*) from contact where state = 'unconfirmed') as listed",
  )
  return row!.listed
}

const TOTALS =
  "select (select count(*) from contact) as total, (select count(*) from contact where state = 'pending') as pending," +
  " (select count(*) from contact where state = 'unconfirmed') as unconfirmed," +
  ' (select count(*) from contact where code is not null) as invited,' +
  ' (select count(*) from contact where code is not null and redeemed_at is not null) as redeemed'

const HELD = "select reason, count(*) as count from contact where state = 'held' group by reason order by 2 desc, 1"

const ON_LIST = "state not in ('held', 'unconfirmed')"

const SOURCES =
  `select source_label as source, count(*) as count from contact where source_label is not null and ${ON_LIST}` +
  ' group by source_label order by 2 desc, 1 limit 20'

/** Milliseconds. Time zones differ by quarters of an hour. */
export const QUARTER = 15 * 60_000
const REACH = 32 * 24 * 60 * 60_000

const SIGNUPS =
  `select created_at / ${QUARTER} as quarter, count(*) as count from contact where created_at >= $1 and created_at < $2` +
  ` and ${ON_LIST} group by 1 order by 1`

/** The oldest one that waits is the one with the smallest number. */
const DELIVERIES = `
with sums as (
  select destination, count(*) as total,
    count(*) filter (where state = 'waiting') as waiting, min(number) filter (where state = 'waiting') as first,
    max(number) filter (where state = 'waiting' and why is not null) as last_tried,
    count(*) filter (where state = 'abandoned') as abandoned, max(number) filter (where state = 'abandoned') as last_abandoned
  from delivery group by destination
)
select destination, total, waiting, abandoned,
  (select case kind when 'joined' then event_at when 'invited' then invited_at when 'confirmation' then confirmation_sent_at
    else created_at end from delivery join contact on contact.number = delivery.contact where delivery.number = first) as oldest,
  (select why from delivery where number = last_tried) as waiting_why,
  (select why from delivery where number = last_abandoned) as abandoned_why
from sums order by total desc, destination`

interface DestinationRow {
  readonly destination: string
  readonly total: number
  readonly waiting: number
  readonly abandoned: number
  readonly oldest: number | null
  readonly waiting_why: string | null
  readonly abandoned_why: string | null
}

/** Counts everything, of one moment. Among millions it takes a second. */
export async function countAll(tx: Tx): Promise<Counts> {
  const [totals] = await tx.all<Record<'total' | 'unconfirmed' | 'pending' | 'invited' | 'redeemed', number>>(TOTALS)
  const { total, unconfirmed, pending, invited, redeemed } = totals!
  const held = await tx.all<Counts['held'][number]>(HELD)
  const heldTotal = held.reduce((sum, { count }) => sum + count, 0)
  // Clocks may be a little apart.
  const quarters = await tx.all<{ quarter: number; count: number }>(SIGNUPS, [tx.now - REACH, tx.now + 60_000])
  const destinations = await tx.all<DestinationRow>(DELIVERIES)
  return {
    at: new Date(tx.now),
    contacts: {
      ...{ unconfirmed, pending, held: heldTotal, invited },
      listed: total - unconfirmed - pending - heldTotal - invited,
    },
    redeemed,
    held,
    signups: quarters.map(({ quarter, count }) => ({ from: new Date(quarter * QUARTER), count })),
    sources: await tx.all<Counts['sources'][number]>(SOURCES),
    deliveries: destinations.flatMap(deliveryCounts),
  }
}

function deliveryCounts({ destination, total, waiting, abandoned, oldest, ...row }: DestinationRow): DeliveryCount[] {
  const since = oldest === null ? null : new Date(oldest)
  const counts: readonly DeliveryCount[] = [
    { destination, state: 'waiting', count: waiting, oldest: since, why: row.waiting_why },
    { destination, state: 'delivered', count: total - waiting - abandoned, oldest: null, why: null },
    { destination, state: 'abandoned', count: abandoned, oldest: null, why: row.abandoned_why },
  ]
  return counts.filter(({ count }) => count > 0)
}

/** What became of the list lately, as the owner of a list asks. A day begins at midnight in the time zone of the process. */
export type Stats = ReturnType<typeof statsOf>

export function statsOf({ at, contacts, redeemed, signups, sources, deliveries }: Counts) {
  const midnight = (ago: number) => new Date(at.getFullYear(), at.getMonth(), at.getDate() - ago).getTime()
  const hour = new Date(at).setMinutes(0, 0, 0)
  // In Swedish, as in ISO 8601.
  const perDay = bars(signups, 30, midnight).map(bar => ({ day: bar.from.toLocaleDateString('sv'), ...bar }))
  const ofDays = (count: number) => perDay.slice(-count).reduce((sum, day) => sum + day.count, 0)
  return {
    at,
    /** An IANA name such as `Europe/Berlin`. */
    timezone: timezone(),
    /** Those that are held and those that did not confirm their address yet are not in it. */
    total: contacts.listed + contacts.pending + contacts.invited,
    ...contacts,
    redeemed,
    today: ofDays(1),
    /** Of today and the six days before. */
    last7Days: ofDays(7),
    last30Days: ofDays(30),
    /** In ascending order; the last one is under way. */
    perHour: bars(signups, 48, ago => hour - ago * 60 * 60_000),
    perDay,
    sources,
    deliveries,
  }
}

/** Sums of signups in spans: the last one began at `begin(0)`, the one before at `begin(1)`. */
function bars(signups: readonly Bar[], length: number, begin: (ago: number) => number): readonly Bar[] {
  const froms = Array.from({ length }, (_, i) => begin(length - 1 - i))
  const sums = froms.map(() => 0)
  for (const { from, count } of signups) {
    const i = froms.findLastIndex(begun => begun <= from.getTime())
    if (i >= 0) sums[i]! += count
  }
  return froms.map((from, i) => ({ from: new Date(from), count: sums[i]! }))
}

/** That of the process, which `TZ` names. What is none counts as UTC. */
export function timezone(): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  return timeZone === undefined || timeZone === 'Etc/Unknown' ? 'UTC' : timeZone
}

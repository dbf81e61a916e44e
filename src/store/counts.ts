import type { HoldReason } from '../signup/contact.ts'
import type { Tx } from './database.ts'
import { type Bar, type Counts, type DeliveryCount, MINUTE, QUARTER, SOURCES } from './stats.ts'

/** Where most are listed, the indexes on the others count them faster than a look at each. */
export async function countListed(tx: Tx): Promise<number> {
  const [row] = await tx.all<{ listed: number }>(
    "select (select count(*) from contact) - (select count(*) from contact where state = 'pending')" +
      " - (select count(*) from contact where state = 'held')" +
      " - (select count(*) from contact where state = 'unconfirmed') as listed",
  )
  return row!.listed
}

/** How far back signups are counted by the minute, and before that by the quarter of an hour. */
const MINUTES_OF = 120 * MINUTE
const QUARTERS_OF = 32 * 24 * 60 * MINUTE

const TOTALS =
  "select (select count(*) from contact) as total, (select count(*) from contact where state = 'pending') as pending," +
  " (select count(*) from contact where state = 'unconfirmed') as unconfirmed," +
  ' (select count(*) from contact where code is not null) as invited,' +
  ' (select count(*) from contact where code is not null and redeemed_at is not null) as redeemed'

const HELD =
  'select reason, count(*) as count, min(created_at) as oldest, max(created_at) as newest' +
  " from contact where state = 'held' group by reason order by 2 desc, 1"

const LABELS =
  'select source_label as source, count(*) as count from contact' +
  " where source_label is not null and state not in ('held', 'unconfirmed') group by source_label order by 2 desc, 1"

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
  const reasons = await tx.all<{ reason: HoldReason; count: number; oldest: number; newest: number }>(HELD)
  const held = reasons.reduce((sum, { count }) => sum + count, 0)
  const labels = await tx.all<{ source: string; count: number }>(LABELS)
  const destinations = await tx.all<DestinationRow>(DELIVERIES)
  return {
    at: new Date(tx.now),
    contacts: { unconfirmed, pending, held, listed: total - unconfirmed - pending - held - invited, invited },
    redeemed,
    held: reasons.map(({ reason, count, oldest, newest }) => ({
      reason,
      count,
      oldest: new Date(oldest),
      newest: new Date(newest),
    })),
    signups: await countSpans(tx),
    sources: labels.slice(0, SOURCES),
    sourced: labels.reduce((sum, { count }) => sum + count, 0),
    deliveries: destinations.flatMap(deliveryCounts),
  }
}

async function countSpans(tx: Tx): Promise<readonly Bar[]> {
  const minutes = Math.floor((tx.now - MINUTES_OF) / QUARTER) * QUARTER
  const spans = async (from: number, to: number, length: number): Promise<readonly Bar[]> => {
    const rows = await tx.all<{ span: number; count: number }>(
      `select created_at / ${length} as span, count(*) as count from contact where created_at >= $1 and created_at < $2` +
        " and state not in ('held', 'unconfirmed') group by 1 order by 1",
      [from, to],
    )
    return rows.map(({ span, count }) => ({ from: new Date(span * length), count }))
  }
  return [...(await spans(minutes - QUARTERS_OF, minutes, QUARTER)), ...(await spans(minutes, tx.now + MINUTE, MINUTE))]
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

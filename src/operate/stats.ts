import type { Config } from '../config/load.ts'
import { type Bar, countAll, statsOf } from '../store/counts.ts'
import { withDatabase } from '../store/open.ts'
import { type Columns, type ExitCode, type Io, moment, number, plain, print, table, toJson } from './output.ts'

/** Prints what the list amounts to. */
export async function stats({ store, service }: Config, { json }: { json?: true }, io: Io): Promise<ExitCode> {
  const counts = await withDatabase(store, ({ read }) => read(countAll))
  const read = { ...statsOf(counts), reasons: counts.held }
  await print(io, json ? [toJson(read)] : report(service, read))
  return 0
}

type Stats = ReturnType<typeof statsOf> & {
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

function* report(service: string, stats: Stats): Generator<string> {
  const { total, listed, pending, invited, redeemed, held, unconfirmed, today, last7Days, last30Days, perDay } = stats
  const parts = [
    `${number(listed)} listed`,
    ...(pending === 0 ? [] : [`${number(pending)} pending`]),
    ...(invited === 0 ? [] : [`${number(invited)} invited (${number(redeemed)} redeemed)`]),
    ...(held === 0 ? [] : [`${number(held)} more held`]),
    ...(unconfirmed === 0 ? [] : [`${number(unconfirmed)} more unconfirmed`]),
  ]
  yield `${plain(service)}, ${moment(stats.at)}\n\n`
  yield `${number(total)} signed up: ${parts.join(', ')}\n`
  yield `${number(today)} today, ${number(last7Days)} in 7 days, ${number(last30Days)} in 30 days\n`
  yield `${line(perDay)} signups per day (${stats.timezone})\n`
  yield* section({ source: ({ source }) => source, contacts: ({ count }) => number(count) }, stats.sources)
  yield* section({ 'held for': ({ reason }) => reason, signups: ({ count }) => number(count) }, stats.reasons)
  yield* section(
    {
      destination: ({ destination }) => destination,
      state: ({ state }) => state,
      count: ({ count }) => number(count),
      oldest: ({ oldest }) => (oldest === null ? '' : moment(oldest)),
      why: ({ why }) => why ?? '',
    },
    stats.deliveries,
  )
}

function* section<T>(columns: Columns<T>, records: readonly T[]): Generator<string> {
  if (records.length === 0) return
  yield '\n'
  yield* table(columns, records)
}

const HEIGHTS = '▁▂▃▄▅▆▇█'

function line(bars: readonly Bar[]): string {
  const most = Math.max(1, ...bars.map(({ count }) => count))
  return bars.map(({ count }) => HEIGHTS[Math.ceil((count / most) * (HEIGHTS.length - 1))]).join('')
}

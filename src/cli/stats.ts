import { operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { type Bar, type Stats, statsOf } from '../waitlist/alerts/counts.ts'
import { moment, number, print, table, toJson } from './print.ts'
import { plain } from './text.ts'

export interface StatsOptions {
  readonly json?: true
}

/** Writes what the list amounts to, for people or as JSON. */
export async function stats(config: Config, { json }: StatsOptions): Promise<void> {
  const read = statsOf(await (await operatorOf(config)).counts())
  await print(json ? [toJson(read)] : report(config.service, read))
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
  if (stats.sources.length > 0) {
    yield '\n'
    yield* table({ source: ({ source }) => source, contacts: ({ count }) => number(count) }, stats.sources)
  }
  if (stats.deliveries.length > 0) {
    yield '\n'
    yield* table(
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
}

const HEIGHTS = '▁▂▃▄▅▆▇█'

function line(bars: readonly Bar[]): string {
  const most = Math.max(1, ...bars.map(({ count }) => count))
  return bars.map(({ count }) => HEIGHTS[Math.ceil((count / most) * (HEIGHTS.length - 1))]).join('')
}

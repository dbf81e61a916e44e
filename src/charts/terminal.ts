import type { Bar, DeliveryCount, Stats } from '../waitlist/alerts/counts.ts'
import { duration, type Mark, marks, short, ticks, type Unit, whole } from './axis.ts'
import { cells, clipped, padded, plain } from './text.ts'

export interface Page {
  /** Columns of the terminal. */
  readonly width: number
  /** Colours a text, or leaves it as it is. */
  paint(style: 'bold' | 'dim' | 'cyan' | 'yellow' | 'red', text: string): string
}

/** Columns. On wider terminals lines would be hard to read, and narrower ones break them. */
const [NARROWEST, WIDEST] = [40, 120]
const SOURCES = 8
/** Rows of a chart: two and three steps of its axis fit. */
const ROWS = 6

/** The list in lines of text. */
export function report(service: string, stats: Stats, { width: given, paint }: Page): string[] {
  const page = { width: Math.min(WIDEST, Math.max(NARROWEST, given)), paint }
  const {
    at,
    timezone,
    total,
    listed,
    pending,
    invited,
    redeemed,
    held,
    unconfirmed,
    today,
    last7Days,
    last30Days,
    perHour,
    perDay,
  } = stats
  const when = new Intl.DateTimeFormat('en-GB', { timeZone: timezone, dateStyle: 'medium', timeStyle: 'short' }).format(
    at,
  )
  // Some zones have names as long as a narrow line.
  const place = clipped(`${when} ${timezone}`, page.width - 12)
  const name = clipped(plain(service), page.width - place.length - 2)
  const parts = [
    `${whole(listed)} listed`,
    ...(pending === 0 ? [] : [`${whole(pending)} pending`]),
    ...(invited === 0 ? [] : [`${whole(invited)} invited${redeemed === 0 ? '' : ` (${whole(redeemed)} redeemed)`}`]),
    ...(held === 0 ? [] : [`${whole(held)} more held`]),
    ...(unconfirmed === 0 ? [] : [`${whole(unconfirmed)} more unconfirmed`]),
  ]
  // Beside the total, and below it where they would not fit.
  const states = parts.length === 1 ? '' : parts.join(', ')
  const sum = `${whole(total)} signed up`
  const fits = sum.length + 2 + states.length <= page.width
  const figures = [
    [today, 'today'],
    [last7Days, 'in 7 days'],
    [last30Days, 'in 30 days'],
  ] as const
  return [
    paint('bold', name) + ' '.repeat(page.width - place.length - cells(name)) + paint('dim', place),
    '',
    `${paint('bold', whole(total))} signed up${fits && states !== '' ? `  ${states}` : ''}`,
    ...(fits ? [] : [clipped(states, page.width)]),
    figures.map(([count, span]) => `${paint('bold', whole(count))} ${span}`).join('   '),
    '',
    ...columns('Signups per hour', perHour, 'hour', timezone, page),
    '',
    ...columns('Signups per day', perDay, 'day', timezone, page),
    ...sourceLines(stats, page),
    ...deliveryLines(stats, page),
  ]
}

/** Eighths of a cell, from below and from the left. */
const RISING = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
const GROWING = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█']

/** A chart of upright bars; where there is no room for all of them, of the last ones. */
export function columns(
  title: string,
  all: readonly Bar[],
  unit: Unit,
  timezone: string,
  { width, paint }: Page,
): string[] {
  const scale = ticks(Math.max(0, ...all.map(({ count }) => count)), 3)
  const top = scale.at(-1)!
  const margin = Math.max(...scale.map(tick => short(tick).length))
  const room = width - margin - 2
  const bars = all.slice(-room)
  const cell = Math.min(4, Math.floor(room / bars.length))
  // Bars that are wider than a column stand apart.
  const bar = Math.max(1, cell - 1)
  const eighths = bars.map(({ count }) => (count === 0 ? 0 : Math.max(1, Math.round((count / top) * ROWS * 8))))
  const rows = Array.from({ length: ROWS }, (_, i) => {
    const row = ROWS - i
    const tick = scale.find(tick => (tick / top) * ROWS === row)
    const label = (tick === undefined ? '' : short(tick)).padStart(margin)
    const filled = eighths.map(high => {
      const part = RISING[Math.min(8, Math.max(0, high - (row - 1) * 8))]!
      return part.repeat(bar).padEnd(cell)
    })
    return paint('dim', `${label} ${tick === undefined ? '│' : '┤'}`) + paint('cyan', filled.join('').trimEnd())
  })
  const floor = [...'─'.repeat(cell * bars.length)]
  let times = ''
  for (const { at, text } of spaced(marks(bars, unit, timezone), cell)) {
    if (at + text.length > room) break
    floor[at] = '┬'
    times = times.padEnd(at) + text
  }
  return [
    paint('bold', title) + paint('dim', `, the last ${bars.length} ${unit}s`),
    ...rows,
    paint('dim', `${'0'.padStart(margin)} └${floor.join('')}`),
    paint('dim', `${' '.repeat(margin + 2)}${times}`),
  ]
}

/** Of the times with their columns, all or every other one, so that there is a space between them; dates stay. */
function spaced(all: readonly Mark[], cell: number): { at: number; text: string }[] {
  const date = all.findIndex(({ text }) => text.includes(' '))
  for (let each = 1; ; each++) {
    const some = all.filter((_, i) => (i - date) % each === 0).map(({ index, text }) => ({ at: index * cell, text }))
    if (some.every(({ at, text }, i) => i + 1 === some.length || at + text.length < some[i + 1]!.at)) return some
  }
}

function sourceLines({ sources, sourced }: Stats, { width, paint }: Page): string[] {
  if (sources.length === 0) return []
  const shown = sources.slice(0, SOURCES).map(({ source, count }) => ({ source: plain(source), count }))
  const names = Math.min(Math.floor(width / 3), Math.max(...shown.map(({ source }) => cells(source))))
  const numbers = whole(shown[0]!.count).length
  const room = width - names - numbers - 4
  const others = sourced - shown.reduce((sum, { count }) => sum + count, 0)
  return [
    '',
    paint('bold', 'Sources') + paint('dim', `, of ${whole(sourced)} known`),
    ...shown.map(({ source, count }) => {
      const eighths = Math.max(1, Math.round((count / shown[0]!.count) * room * 8))
      const bar = '█'.repeat(Math.floor(eighths / 8)) + GROWING[eighths % 8]!
      return `${padded(clipped(source, names), names)}  ${whole(count).padStart(numbers)}  ${paint('cyan', bar)}`
    }),
    ...(others === 0 ? [] : [paint('dim', `and ${whole(others)} from other sources`)]),
  ]
}

function deliveryLines({ at, deliveries }: Stats, { width, paint }: Page): string[] {
  if (deliveries.length === 0) return []
  const states = ['waiting', 'delivered', 'abandoned'] as const
  const destinations = [...Map.groupBy(deliveries, ({ destination }) => destination)]
  const names = Math.min(Math.floor(width / 3), Math.max(10, ...destinations.map(([name]) => cells(plain(name)))))
  return [
    '',
    paint('bold', padded('Deliveries', names)) + paint('dim', states.map(state => state.padStart(12)).join('')),
    ...destinations.flatMap(([name, counts]) => {
      const of = (state: (typeof states)[number]) => counts.find(count => count.state === state)
      const numbers = states.map(state => whole(of(state)?.count ?? 0).padStart(12))
      const told = counts.flatMap(count => reason(count, at, width, paint))
      return [padded(clipped(plain(name), names), names) + numbers.join(''), ...told]
    }),
  ]
}

/** What waits and what was abandoned, and why. */
function reason(
  { state, oldest, why }: DeliveryCount,
  at: Date,
  width: number,
  paint: Page['paint'],
): readonly string[] {
  const waits = oldest === null ? '' : `, the oldest for ${duration(at.getTime() - oldest.getTime())}`
  if (state === 'delivered') return []
  const text = `  ${state}${waits}${why === null ? '' : `: ${plain(why)}`}`
  return [paint(state === 'abandoned' ? 'red' : why === null ? 'dim' : 'yellow', clipped(text, width))]
}

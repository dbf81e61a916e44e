import { BUSY, costsOf, needsOf } from './plan.ts'
import { figures, levelsOf, type RawFigures, rateOf, type Sample, type Setup, type Spread, spreadOf } from './raw.ts'
import {
  band,
  bar,
  curve,
  decades,
  dot,
  type Hue,
  label,
  line,
  linear,
  logarithmic,
  picture,
  type Scale,
  ticks,
  whisker,
} from './svg.ts'

/** All plots of a run, by the names of their files. */
export function plots(raw: RawFigures): Readonly<Record<string, string>> {
  return { 'cost.svg': costPlot(raw), 'load.svg': loadPlot(raw), 'plan.svg': planPlot(raw) }
}

const thousands = (value: number): string =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : value.toLocaleString('en')

/** Who spends processor time on a signup, in the order of the bars. */
const spenders: readonly { name: string; hue: Hue; of: (sample: Sample) => number | null }[] = [
  { name: 'the instance', hue: 'a', of: ({ waitlist }) => waitlist },
  { name: 'PostgreSQL', hue: 'b', of: ({ postgres }) => postgres },
  { name: 'Redis', hue: 'c', of: ({ redis }) => redis },
]

function costPlot(raw: RawFigures): string {
  const bars: { name: string; setup: Setup; connections: number }[] = [
    ...levelsOf(raw, 'one instance').map(connections => ({
      ...{ setup: 'one instance' as const, connections },
      name: connections === 1 ? '1 connection' : `${connections} connections`,
    })),
    { name: '64, two instances', setup: 'two instances', connections: 64 },
    { name: '64, limit in Redis', setup: 'redis limiter', connections: 64 },
    { name: '64, one insert each', setup: 'one insert', connections: 64 },
  ].filter(({ setup, connections }) => figures(raw, setup as Setup, connections, rateOf).length > 0) as typeof bars
  const all = bars.map(({ setup, connections }) => {
    const { least, most } = spreadOf(figures(raw, setup, connections, totalOf))
    const parts = spenders.map(({ of }) => figures(raw, setup, connections, of)).filter(values => values.length > 0)
    return { least, most, median: parts.reduce((sum, values) => sum + spreadOf(values).median, 0) }
  })
  const marks = ticks(Math.max(...all.map(({ most }) => most)))
  const [left, right, top, step] = [150, 690, 72, 34]
  const x = linear(marks.at(-1)!, left, right)
  const bottom = top + bars.length * step
  const parts = marks.flatMap(mark => [
    line({ x: x(mark), y: top - 8 }, { x: x(mark), y: bottom }, 'grid'),
    label(x(mark), bottom + 16, thousands(mark), 'middle', 'soft'),
  ])
  parts.push(label((left + right) / 2, bottom + 36, 'µs of processor time for one new signup', 'middle', 'soft'))
  spenders.forEach(({ name, hue }, i) => {
    parts.push(bar(left + i * 120, 42, 12, 12, hue), label(left + 18 + i * 120, 52, name))
  })
  bars.forEach(({ name, setup, connections }, i) => {
    const y = top + i * step
    parts.push(label(left - 10, y + 15, name, 'end'))
    let from = 0
    for (const { hue, of } of spenders) {
      const values = figures(raw, setup, connections, of)
      if (values.length === 0) continue
      const { median } = spreadOf(values)
      parts.push(bar(x(from), y, Math.max(0, x(from + median) - x(from) - 1), 20, hue))
      from += median
    }
    const { least, most, median } = all[i]!
    parts.push(whisker({ x: x(least), y: y + 10 }, { x: x(most), y: y + 10 }))
    parts.push(label(x(most) + 8, y + 15, String(Math.round(median)), 'start'))
  })
  const description = bars
    .map(({ name }, i) => `${name}: ${Math.round(all[i]!.median)} µs`)
    .join('; ')
    .concat('. The thin line goes from the least to the most of the rounds.')
  const title = 'Processor time of one new signup, and who spends it'
  return picture({ width: 760, height: bottom + 50, title, description }, parts)
}

const totalOf = ({ waitlist, postgres, redis }: Sample) => (waitlist ?? 0) + (postgres ?? 0) + (redis ?? 0)

interface Series {
  readonly name: string
  readonly hue: Hue
  readonly points: readonly (Spread & { readonly x: number })[]
  readonly dashed?: boolean
}

interface Panel {
  readonly heading: string
  readonly series: readonly Series[]
  readonly marks: readonly number[]
  readonly y: Scale
}

const [panelTop, panelBottom, panelWidth] = [76, 270, 226]

function loadPlot(raw: RawFigures): string {
  const series = (name: string, hue: Hue, setup: Setup, of: (sample: Sample) => number | null): Series => ({
    ...{ name, hue },
    points: levelsOf(raw, setup).map(x => ({ x, ...spreadOf(figures(raw, setup, x, of)) })),
  })
  const rates = [series('one instance', 'a', 'one instance', rateOf), series('bare node:http', 'c', 'bare', rateOf)]
  const waits = [
    series('p50', 'a', 'one instance', ({ p50 }) => p50),
    series('p99', 'b', 'one instance', ({ p99 }) => p99),
  ]
  const batches = [series('signups', 'b', 'one instance', ({ commits }) => 1 / commits)]
  const even = (all: readonly Series[]): Pick<Panel, 'marks' | 'y'> => {
    const marks = ticks(Math.max(...all.flatMap(({ points }) => points.map(({ most }) => most))))
    return { marks, y: linear(marks.at(-1)!, panelBottom, panelTop) }
  }
  const values = waits.flatMap(({ points }) => points.flatMap(({ least, most }) => [least, most]))
  const tens = decades(Math.min(...values), Math.max(...values))
  const panels: Panel[] = [
    { heading: 'signups per second', series: rates, ...even(rates) },
    {
      ...{ heading: 'milliseconds until the answer', series: waits, marks: tens },
      y: logarithmic(tens[0]!, tens.at(-1)!, panelBottom, panelTop),
    },
    { heading: 'signups in one commit', series: batches, ...even(batches) },
  ]
  const description = levelsOf(raw, 'one instance')
    .map(connections => {
      const middle = (of: (sample: Sample) => number) => spreadOf(figures(raw, 'one instance', connections, of)).median
      const rate = Math.round(middle(rateOf)).toLocaleString('en')
      const batch = middle(({ commits }) => 1 / commits).toFixed(1)
      return `${connections} connections: ${rate} signups/s, p99 ${middle(({ p99 }) => p99)} ms, ${batch} signups in a commit`
    })
    .join('; ')
    .concat('. Bands and thin lines go from the least to the most of the rounds.')
  const parts = panels.flatMap((panel, i) =>
    drawPanel(panel, 62 + i * (panelWidth + 74), levelsOf(raw, 'one instance')),
  )
  const title = 'One instance on PostgreSQL: what more connections bring'
  return picture({ width: 940, height: 320, title, description }, parts)
}

function drawPanel({ heading, series, marks, y }: Panel, left: number, levels: readonly number[]): string[] {
  const right = left + panelWidth
  const x = logarithmic(levels[0]!, levels.at(-1)!, left + 8, right - 8)
  const parts = [label(left, panelTop - 22, heading)]
  for (const mark of marks) {
    parts.push(line({ x: left, y: y(mark) }, { x: right, y: y(mark) }, 'grid'))
    parts.push(label(left - 8, y(mark) + 4, thousands(mark), 'end', 'soft'))
  }
  for (const level of levels) parts.push(label(x(level), panelBottom + 18, String(level), 'middle', 'soft'))
  parts.push(label((left + right) / 2, panelBottom + 36, 'connections', 'middle', 'soft'))
  series.forEach(({ name, hue, points }, i) => {
    const to = (of: (point: Series['points'][number]) => number) => points.map(p => ({ x: x(p.x), y: y(of(p)) }))
    const middle = to(({ median }) => median)
    parts.push(
      band(
        to(({ most }) => most),
        to(({ least }) => least),
        hue,
      ),
      curve(middle, hue),
    )
    for (const point of points) {
      parts.push(whisker({ x: x(point.x), y: y(point.least) }, { x: x(point.x), y: y(point.most) }))
    }
    parts.push(...middle.map(point => dot(point, hue)))
    if (series.length > 1)
      parts.push(bar(left + i * 110, panelTop - 16, 10, 10, hue), label(left + 14 + i * 110, panelTop - 7, name))
  })
  return parts
}

/** The rates that are planned for. */
export const targets = [1_000, 50_000, 1_000_000]

function planPlot(raw: RawFigures): string {
  const costs = costsOf(raw)
  const rates = Array.from({ length: 41 }, (_, i) => 10 ** (2 + i / 10))
  const lines: { name: string; hue: Hue; of: (rate: number) => number; dashed?: boolean }[] = [
    { name: 'instances, one core each', hue: 'a', of: rate => needsOf(rate, raw, costs).instances },
    { name: 'cores of PostgreSQL', hue: 'b', of: rate => needsOf(rate, raw, costs).postgresCores },
    {
      name: 'cores for new TLS connections',
      hue: 'c',
      of: rate => needsOf(rate, raw, costs).handshakeCores,
      dashed: true,
    },
  ]
  const [left, right, top, bottom] = [70, 620, 60, 350]
  const x = logarithmic(1e2, 1e6, left, right)
  const tens = decades(0.1, Math.max(...lines.map(({ of }) => of(1e6))))
  const y = logarithmic(tens[0]!, tens.at(-1)!, bottom, top)
  const parts = tens.flatMap(mark => [
    line({ x: left, y: y(mark) }, { x: right, y: y(mark) }, 'grid'),
    label(left - 8, y(mark) + 4, thousands(mark), 'end', 'soft'),
  ])
  for (const mark of decades(1e2, 1e6)) parts.push(label(x(mark), bottom + 18, thousands(mark), 'middle', 'soft'))
  parts.push(label((left + right) / 2, bottom + 38, 'new signups per second', 'middle', 'soft'))
  for (const target of targets) parts.push(line({ x: x(target), y: top }, { x: x(target), y: bottom }, 'grid'))
  const ends: { y: number; what: string; hue: Hue }[] = []
  lines.forEach(({ name, hue, of, dashed = false }, i) => {
    parts.push(
      curve(
        rates.map(rate => ({ x: x(rate), y: y(of(rate)) })),
        hue,
        dashed,
      ),
    )
    for (const target of targets) {
      const value = of(target)
      parts.push(dot({ x: x(target), y: y(value) }, hue))
    }
    parts.push(bar(left + 12, top + 10 + i * 20, 12, 12, hue), label(left + 30, top + 20 + i * 20, name))
    ends.push({ y: y(of(1e6)) + 4, what: needsText(of(1e6)), hue })
  })
  // Lines that end at the same height must not have one number over the other.
  ends.sort((a, b) => a.y - b.y)
  for (const [i, end] of ends.entries()) {
    const above = ends[i - 1]
    if (above !== undefined) end.y = Math.max(end.y, above.y + 14)
    parts.push(label(right + 8, end.y, end.what, 'start', end.hue))
  }
  const description = lines
    .map(
      ({ name, of }) => `${name}: ${targets.map(each => `${needsText(of(each))} for ${thousands(each)}/s`).join(', ')}`,
    )
    .join('; ')
    .concat('. Computed from the measured costs, not tried.')
  const title = `What so many signups per second need, each part ${BUSY * 100} % busy (computed)`
  return picture({ width: 700, height: 400, title, description }, parts)
}

const needsText = (value: number): string =>
  value < 10 ? value.toFixed(1).replace('.0', '') : thousands(Math.round(value))

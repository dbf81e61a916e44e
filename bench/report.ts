import type { Measured } from './job.ts'

/** One measurement with what the server process spent on it. */
export interface Sample extends Measured {
  /** Microseconds of processor time of the server process, all threads, for one request; NaN where unknown. */
  readonly cpu: number
}

/** The subject and the baseline in the same round. */
export interface Round {
  readonly subject: Sample
  readonly baseline: Sample
}

export interface Comparison {
  readonly name: string
  readonly goal: number
  readonly rounds: readonly Round[]
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

const rate = ({ requests, seconds }: Sample): number => requests / seconds

const ratios = (rounds: readonly Round[]): readonly number[] =>
  rounds.map(({ subject, baseline }) => rate(subject) / rate(baseline))

export const isMet = ({ rounds, goal }: Comparison): boolean => median(ratios(rounds)) >= goal

/** The median with the least and the most. */
export function spread(values: readonly number[], digits: number): string {
  const text = (value: number) => (Number.isNaN(value) ? '–' : value.toFixed(digits))
  return `${text(median(values))} (${text(Math.min(...values))}–${text(Math.max(...values))})`
}

const columns = [
  'scenario',
  'rate, ratio',
  'goal',
  'met',
  'CPU time per request, ratio',
  'requests/s',
  'p50 ms',
  'p99 ms',
  'CPU µs per request',
  'generator busy',
]

/** A table in Markdown. Ratios are taken within each round; two figures with a stroke are the subject / the baseline. */
export function comparisonTable(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(comparison => {
    const { name, goal, rounds } = comparison
    const both = (figure: (sample: Sample) => number, digits: number) =>
      `${median(rounds.map(({ subject }) => figure(subject))).toFixed(digits)} / ${median(
        rounds.map(({ baseline }) => figure(baseline)),
      ).toFixed(digits)}`
    return [
      name,
      spread(ratios(rounds), 2),
      `≥ ${goal.toFixed(2)}`,
      isMet(comparison) ? 'yes' : 'no',
      spread(
        rounds.map(({ subject, baseline }) => baseline.cpu / subject.cpu),
        2,
      ),
      both(rate, 0),
      both(({ p50 }) => p50, 2),
      both(({ p99 }) => p99, 2),
      both(({ cpu }) => cpu, 1),
      both(({ busy }) => busy, 2),
    ]
  })
  return markdown(columns, rows)
}

export interface Figure {
  readonly name: string
  readonly value: string
  /** The bare server's, where it has one. */
  readonly bare: string
  readonly goal?: string
  readonly met?: boolean
}

export function figureTable(figures: readonly Figure[]): string {
  return markdown(
    ['figure', 'service', 'bare', 'goal', 'met'],
    figures.map(({ name, value, bare, goal, met }) => [
      name,
      value,
      bare,
      goal ?? '',
      met === undefined ? '' : met ? 'yes' : 'no',
    ]),
  )
}

export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map(row => row[i]!.length)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`
  return [line(head), `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n')
}

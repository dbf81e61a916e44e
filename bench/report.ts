import { type Round, rateOf, type Sample } from './measure.ts'
import type { Goals } from './scenarios.ts'

export interface Comparison {
  readonly name: string
  readonly goals?: Goals
  readonly rounds: readonly Round[]
}

/** A figure that compares no rates. */
export interface Figure {
  readonly name: string
  readonly value: string
  /** The baseline's, where it has one. */
  readonly bare?: string
  readonly goal?: string
  readonly met?: boolean
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export const count = (value: number, digits = 0): string =>
  Number.isNaN(value)
    ? '–'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** The median with the least and the most. */
export const spread = (values: readonly number[], digits = 0): string =>
  `${count(median(values), digits)} (${count(Math.min(...values), digits)}–${count(Math.max(...values), digits)})`

export const judged = (goal: string, met: boolean): string => `${goal}: ${met ? 'met' : '**missed**'}`

/** Ratios are taken within each round; `a / b` are the subject's median and the baseline's. */
export function comparisonTable(comparisons: readonly Comparison[], baseline = 'bare'): string {
  const rows = comparisons.map(({ name, goals, rounds }) => {
    const rates = rounds.map(({ subject, baseline }) => rateOf(subject) / rateOf(baseline))
    const times = rounds.map(({ subject, baseline }) => subject.time / baseline.time)
    const both = (figure: (sample: Sample) => number, digits = 0) =>
      (['subject', 'baseline'] as const)
        .map(who => count(median(rounds.map(round => figure(round[who]))), digits))
        .join(' / ')
    return [
      name,
      spread(rates, 2),
      goals === undefined ? '' : judged(`≥ ${goals.rate.toFixed(2)}`, median(rates) >= goals.rate),
      spread(times, 2),
      goals?.time === undefined ? '' : judged(`≤ ${goals.time.toFixed(2)}`, median(times) <= goals.time),
      both(rateOf),
      both(({ time }) => time, 1),
      both(({ p50 }) => p50, 2),
      both(({ p99 }) => p99, 2),
    ]
  })
  const ratios = [`rate, of ${baseline}`, 'goal', `processor time, of ${baseline}’s`, 'goal']
  return markdown(['scenario', ...ratios, 'requests/s', 'µs for a request', 'p50 ms', 'p99 ms'], rows)
}

export const figureTable = (figures: readonly Figure[]): string =>
  markdown(
    ['figure', 'service', 'bare', 'goal'],
    figures.map(({ name, value, bare = '', goal, met }) => [
      name,
      value,
      bare,
      goal === undefined ? '' : judged(goal, met === true),
    ]),
  )

/** Waits for answers, p99, as a multiple of the baseline's. */
export function waitFigure(name: string, rounds: readonly Round[], most: number, baseline = 'bare'): Figure {
  const ratios = rounds.map(({ subject, baseline }) => subject.p99 / baseline.p99)
  const wait = (who: keyof Round) => `${count(median(rounds.map(round => round[who].p99)), 2)} ms`
  return {
    name,
    value: `${wait('subject')}: ${spread(ratios, 2)} × ${baseline}’s`,
    bare: wait('baseline'),
    goal: `≤ ${most} × ${baseline}’s`,
    met: median(ratios) <= most,
  }
}

export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `|${cells.map(cell => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

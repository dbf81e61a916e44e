import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { count, judged, markdown, withRun } from '../bench/report.ts'
import { svgOf } from './plot.ts'
import type { Figure, Result } from './scenario.ts'

/** What is kept of the last run of a scenario that was written. */
export interface Entry extends Result {
  readonly name: string
  readonly promise: string
  /** Year, month and day. */
  readonly date: string
  readonly machine: readonly string[]
  readonly seed: number
  /** Seconds. */
  readonly took: number
}

const folder = new URL('../docs/engineering/', import.meta.url)
const page = new URL('reliability.md', folder)
/** Every entry, from which the page is made. */
const record = new URL('reliability.json', folder)

/** Decimals that nobody reads are left out. The points of a plot are in its file. */
const kept = (key: string, value: unknown): unknown => {
  if (key === 'lines') return undefined
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
}

/** Replaces these scenarios in the record, in the page and among the plots. Those that did not run stay. */
export function keep(entries: readonly Entry[]): void {
  const named = new Map(recorded().map(entry => [entry.name, entry]))
  for (const entry of entries) named.set(entry.name, entry)
  const all = [...named.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  const text = JSON.stringify(all, kept, 1)
  writeFileSync(record, `${text}\n`)
  writeFileSync(page, withRun(readFileSync(page, 'utf8'), textOf(JSON.parse(text))))
  mkdirSync(new URL('plots/', folder), { recursive: true })
  for (const { name, plots = [] } of entries) {
    for (const plot of plots) writeFileSync(new URL(`plots/${name}.${plot.name}.svg`, folder), svgOf(plot))
  }
}

const recorded = (): Entry[] => JSON.parse(readFileSync(record, 'utf8'))

export function textOf(entries: readonly Entry[]): string {
  return entries
    .map(({ name, promise, date, machine, seed, took, figures, plots = [], broken = [] }) =>
      [
        `### ${name}`,
        promise,
        broken.length === 0 ? 'Held.' : `**Broken**: ${broken.join(' ')}`,
        tableOf(figures),
        ...plots.map(plot => `![${plot.title}](plots/${name}.${plot.name}.svg)`),
        `${date}, seed ${seed}, ${count(took)} s. ${machine.join('; ')}.`,
      ].join('\n\n'),
    )
    .join('\n\n')
}

export const tableOf = (figures: readonly Figure[]): string =>
  figures.length === 0
    ? ''
    : markdown(
        ['figure', 'value', 'goal'],
        figures.map(figure => [figure.name, withUnit(figure.value, figure.unit), goalOf(figure)]),
      )

const withUnit = (value: number, unit = ''): string =>
  `${count(value, Number.isInteger(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`.trim()

function goalOf({ value, unit, most, least }: Figure): string {
  if (most !== undefined) return judged(`≤ ${withUnit(most, unit)}`, value <= most)
  return least === undefined ? '' : judged(`≥ ${withUnit(least, unit)}`, value >= least)
}

import { count, judged, markdown } from '../bench/report.ts'
import type { Figure } from './scenario.ts'

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

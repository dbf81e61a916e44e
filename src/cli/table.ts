/** How records are shown to people: nothing in them controls the terminal, not even what a stranger has typed. */

import { cells, padded, plain } from '../charts/text.ts'

/** Records in memory at once. */
export const MOST = 10_000

/** For each column its heading and what it has of a record. */
export type Columns<T> = Readonly<Record<string, (record: T) => string>>

export function* table<T>(columns: Columns<T>, records: readonly T[]): Generator<string> {
  const rows = [Object.keys(columns), ...records.map(record => Object.values(columns).map(text => plain(text(record))))]
  const widths = Object.keys(columns).map((_, i) => rows.reduce((most, row) => Math.max(most, cells(row[i]!)), 0))
  for (const row of rows) {
    yield `${row
      .map((text, i) => padded(text, widths[i]!))
      .join('  ')
      .trimEnd()}\n`
  }
}

/** What is known of one record, a line each. */
export const facts = (known: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(known).map(([what, text]) => `${what.padEnd(13)}${plain(text)}\n`)

/** With separators of thousands. */
export const number = (count: number): string => count.toLocaleString('en')

/** Below a table. An import adds contacts that signed up before others. */
export const moreThan = (count: number): string =>
  `There are more than these ${number(count)}, which were added last; --limit shows them.\n`

/** In UTC, to the second. */
export const moment = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z')

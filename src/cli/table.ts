/** How records are shown to people: nothing in them, whoever wrote it, controls the terminal. */

/** For each column its heading and what it has of a record. */
export type Columns<T> = Readonly<Record<string, (record: T) => string>>

export function* table<T>(columns: Columns<T>, records: readonly T[]): Generator<string> {
  const rows = [
    Object.keys(columns),
    ...records.map(record => Object.values(columns).map(text => inOneLine(text(record)))),
  ]
  const widths = Object.keys(columns).map((_, i) => rows.reduce((most, row) => Math.max(most, width(row[i]!)), 0))
  for (const row of rows) {
    const padded = row.map((text, i) => text + ' '.repeat(widths[i]! - width(text))).join('  ')
    yield `${padded.trimEnd()}\n`
  }
}

/** What is known of one record, a line each. */
export const facts = (known: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(known).map(([what, text]) => `${what.padEnd(13)}${inOneLine(text)}\n`)

/** In UTC, to the second. */
export const moment = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z')

/** Without controls and what changes the direction of text. The two joiners are part of how names are spelt. */
const inOneLine = (text: string): string => text.replaceAll(/(?:[\p{Cc}\s]|(?![\u200C\u200D])\p{Cf})+/gu, ' ')

const segmenter = new Intl.Segmenter()

/** What takes two columns (Unicode Standard Annex #11, W and F). */
const wide =
  /\uFE0F|[\p{Emoji_Presentation}\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\u{20000}-\u{3FFFD}]/u

/** Columns that a text takes on a terminal. */
function width(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  return [...segmenter.segment(text)].reduce((sum, { segment }) => sum + (wide.test(segment) ? 2 : 1), 0)
}

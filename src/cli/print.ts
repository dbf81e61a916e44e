import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { cells, padded, plain } from './text.ts'

/** Writes to standard output at its reader's speed. */
export async function print(texts: Iterable<string> | AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(inChunks(texts)), process.stdout, { end: false })
  } catch (error) {
    // The reader has closed the pipe (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/** In colour where the stream shows colours, which NO_COLOR and TERM=dumb deny. */
export const paint = (
  style: Parameters<typeof styleText>[0],
  text: string,
  stream: WriteStream = process.stdout,
): string => (stream.isTTY && stream.hasColors() ? styleText(style, text, { validateStream: false }) : text)

/** UTF-16 code units. */
const CHUNK = 65_536

/** Fewer and larger texts, since each is written for itself. */
export async function* inChunks(texts: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  let chunk = ''
  for await (const text of texts) {
    chunk += text
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

/** What would control a terminal or the order of letters. The two joiners are part of how names are spelt. */
const CONTROLLING = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const escaped = (text: string): string =>
  text.replaceAll(/[\s\S]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A value on a line; with `indent` on several, for people. What strangers typed controls nothing, and stays the same value. */
export const toJson = (value: unknown, indent = 0): string =>
  `${JSON.stringify(value, null, indent).replaceAll(CONTROLLING, escaped)}\n`

/** Records in memory at once. */
export const MOST = 10_000

/** For each column its heading and what it has of a record. As a table nothing controls the terminal, whatever a stranger has typed. */
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

/** "1 contact", "1,204 contacts". */
export const counted = (count: number, one: string, more = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : more}`

/** Below a table. An import adds contacts that signed up before others. */
export const moreThan = (count: number): string =>
  `There are more than these ${number(count)}, which were added last; --limit shows them.\n`

/** In UTC, to the second. */
export const moment = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z')

/** Milliseconds between two counts. */
const EVERY = 100

/** Counts in one line on a terminal how far a command is, and writes nothing elsewhere. */
export function counter(stream: Pick<WriteStream, 'isTTY' | 'write'> = process.stderr) {
  let shown = performance.now()
  let isShown = false
  return {
    show(label: string, done: number): void {
      if (!stream.isTTY || performance.now() - shown < EVERY) return
      shown = performance.now()
      isShown = true
      // Returns to the start of the line, and clears the rest of it (ECMA-48 EL).
      stream.write(`\r${label}: ${number(done)}\x1b[K`)
    },
    end(): void {
      if (isShown) stream.write('\r\x1b[K')
      isShown = false
    },
  }
}

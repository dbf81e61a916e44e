import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { cells, padded, plain } from '../charts/text.ts'

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

/** `done` and `total` count rows. */
interface Progress {
  readonly phase: string
  readonly done: number
  readonly total: number
}

/** The part of a stream that showing progress needs. */
export interface Screen {
  readonly isTTY?: boolean
  /** How wide a terminal is; 0: it does not say. */
  readonly columns?: number
  write(text: string): unknown
}

/** Milliseconds between two updates of the bar. */
const EVERY = 100
const WIDTH = 30

/** Rows. Fewer take a moment. */
const MANY = 5_000

/** Shows the progress of a command as a bar on a terminal, and nothing elsewhere. */
export function progressOn(screen: Screen, now = () => performance.now()) {
  let phase = ''
  let began = 0
  let shown = 0
  let unfinished = false

  function end(): void {
    if (unfinished) screen.write('\n')
    unfinished = false
  }

  function show({ phase: current, done, total }: Progress): void {
    if (!screen.isTTY || total === 0) return
    if (phase !== current) {
      end()
      began = now()
      phase = current
    } else if (now() - shown < EVERY && done < total) return
    shown = now()
    const percent = Math.floor((100 * done) / total)
    const line = `${phase}: ${number(done)} of ${number(total)} rows, ${percent} %${pace(done, total, now() - began)}`
    // In one line, or the next update would not return to its start.
    const width = Math.min(WIDTH, (screen.columns || Number.POSITIVE_INFINITY) - line.length - 4)
    const full = Math.floor((width * done) / total)
    const bar = width > 0 ? `[${'#'.repeat(full)}${' '.repeat(width - full)}] ` : ''
    // Returns to the start of the line, and clears the rest of a longer text (ECMA-48 EL).
    screen.write(`\r${bar}${line}\x1b[K`)
    unfinished = true
  }

  return {
    show,
    /** Shows one phase, unless it has few rows. `total` is of its beginning: more may be done by now. */
    of: (phase: string) => (done: number, total: number) => {
      if (total > MANY) show({ phase, done: Math.min(done, total), total })
    },
    /** Ends the line of the bar. */
    end,
  }
}

/** Not during the first moments, which say little about the rest. */
function pace(done: number, total: number, milliseconds: number): string {
  if (done === 0 || done === total || milliseconds < 2_000) return ''
  const rate = (done / milliseconds) * 1_000
  return `, ${number(Math.round(rate))}/s, ${Math.ceil((total - done) / rate)} s left`
}

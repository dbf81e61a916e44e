import { createInterface } from 'node:readline'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { OperatorError } from '../config/operator.ts'
import { type Contact, sourceLabel, sourceParameters } from '../signup/contact.ts'

/** What commands read from and write to, and how they write it. */

type Terminal = Writable & { readonly isTTY?: boolean }

export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  /** Data. */
  readonly stdout: Terminal
  /** Messages and questions. */
  readonly stderr: Terminal
}

/** 0: done. 1: not done, not all of it, or nothing was found. 2: the command line makes no sense. */
export type ExitCode = 0 | 1 | 2

export function fail({ stderr }: Pick<Io, 'stderr'>, problem: string, details: readonly string[] = []): 1 {
  stderr.write(`waitlist: ${problem}\n${details.map(detail => `  - ${detail}\n`).join('')}`)
  return 1
}

export function misused(io: Pick<Io, 'stderr'>, problem: string): 2 {
  fail(io, problem)
  return 2
}

/**
 * Asks before something that cannot be undone, unless `yes` is the answer already. Returns the exit code if the answer is
 * not yes; undefined: go on.
 */
export async function ask(io: Io, yes: true | undefined, question: string): Promise<ExitCode | undefined> {
  if (yes) return undefined
  if (!io.stdin.isTTY || !io.stderr.isTTY) return misused(io, 'There is no terminal to ask on; --yes does it unasked.')
  io.stderr.write(`${question} [y/N] `)
  const lines = createInterface({ input: io.stdin })
  for await (const line of lines) {
    lines.close()
    // A terminal that is still read from would keep the process from ending.
    io.stdin.destroy()
    return /^\s*y(?:es)?\s*$/i.test(line) ? undefined : fail(io, 'nothing was done.')
  }
  io.stderr.write('\n')
  return fail(io, 'nothing was done.')
}

/** Writes to standard output at its reader's speed. */
export async function print(io: Io, texts: Iterable<string> | AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(inChunks(texts)), io.stdout, { end: false })
  } catch (error) {
    // The reader has closed the pipe (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/** UTF-16 code units. */
const CHUNK = 65_536

/** Fewer and larger texts, since each is written by itself. */
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

/** For each column its heading, and its text for a record. */
export type Columns<T> = Readonly<Record<string, (record: T) => string>>

/** Of contacts in a table. */
export const contactColumns: Columns<Contact> = {
  'signed up': ({ createdAt }) => moment(createdAt),
  state: ({ state, reason }) => (reason === undefined ? state : `${state}: ${reason}`),
  name: ({ name }) => name,
  address: ({ email }) => email,
  source: ({ source }) => sourceLabel(source) ?? '',
}

/** The most records that a listing has; `export` writes any number. */
export const LISTING_MAX = 10_000

export interface ListingOptions {
  readonly limit: number
  /** One JSON object a line. */
  readonly json?: true | undefined
}

/** Prints up to `limit` records. `found` has one more if there are more. */
export async function listing<T>(
  io: Io,
  found: readonly T[],
  { limit, json, columns, toRecord }: ListingOptions & { columns: Columns<T>; toRecord(found: T): object },
): Promise<ExitCode> {
  if (found.length === 0) return fail(io, 'nothing was found.')
  const shown = found.slice(0, limit)
  await print(io, json ? shown.map(each => toJson(toRecord(each))) : table(columns, shown))
  if (found.length > limit && !json) {
    io.stderr.write(`There are more than these ${number(limit)}; --limit shows more.\n`)
  }
  return 0
}

export function* table<T>(columns: Columns<T>, records: readonly T[]): Generator<string> {
  const rows = [Object.keys(columns), ...records.map(record => Object.values(columns).map(text => plain(text(record))))]
  const widths = Object.keys(columns).map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]!.length), 0))
  for (const row of rows)
    yield `${row
      .map((text, i) => text.padEnd(widths[i]!))
      .join('  ')
      .trimEnd()}\n`
}

/** What is known of one record, a line each. */
export const facts = (known: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(known).map(([what, text]) => `${what.padEnd(13)}${plain(text)}\n`)

/** One line of what a stranger typed, without what controls a terminal or the order of letters. Names need the two joiners. */
export const plain = (text: string): string =>
  text.toWellFormed().replaceAll(/(?:[\p{Cc}\s]|(?![\u200C\u200D])\p{Cf})+/gu, ' ')

const CONTROLLING = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const escaped = (text: string): string =>
  text.replaceAll(/[\s\S]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** One line, or several with `indent`. What controls a terminal is escaped, so the value stays the same. */
export const toJson = (value: unknown, indent = 0): string =>
  `${JSON.stringify(value, null, indent).replaceAll(CONTROLLING, escaped)}\n`

/** A contact in the JSON of `list`, `show` and `export`. */
export const contactRecord = (contact: Contact) => {
  const { id, name, email, state, createdAt, source, reason, invitation, confirmedAt } = contact
  const { at: invitedAt, code, redeemedAt } = invitation ?? {}
  return { id, name, email, state, createdAt, source, reason, invitedAt, code, redeemedAt, confirmedAt }
}

/** The same as columns of CSV, with the source in several. */
export const contactFields = [
  ...['id', 'name', 'email', 'state', 'reason', 'createdAt'],
  ...sourceParameters,
  ...['invitedAt', 'code', 'redeemedAt', 'confirmedAt'],
]

/** Milliseconds since 1970 of a date or time in ISO 8601, or as tools write it; in UTC unless it has an offset. NaN: it is none. */
export function timeOf(value: unknown): number {
  if (typeof value !== 'string') return Number.NaN
  const text = value
    .trim()
    .replace(/UTC$/i, 'Z')
    .replace(/ (?=[Z+-])/i, '')
  const isInUtc = /^[\d-]+(?:[T ][\d:.]+)?$/.test(text)
  try {
    return Temporal.Instant.from(isInUtc ? `${Temporal.PlainDateTime.from(text)}Z` : text).epochMilliseconds
  } catch {
    return Number.NaN
  }
}

/** Texts without their line breaks. `node:readline` takes U+2028 for one, too. */
export async function* linesOf(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let [line, rest] = [0, '']
  for await (const text of texts) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    line += lines.length
    if (rest.length > LINE_MAX) {
      throw new OperatorError(`Line ${line + 1} goes on for more than ${number(LINE_MAX)} characters.`)
    }
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Characters of one line of a file, or of one record with line breaks in it. */
export const LINE_MAX = 1_048_576

/** With separators of thousands. */
export const number = (count: number): string => count.toLocaleString('en')

/** "1 contact", "1,204 contacts". */
export const counted = (count: number, one: string, more = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : more}`

/** In UTC, to the second. */
export const moment = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z')

/** "512 MiB", "1.5 GiB". */
export const bytes = (count: number): string =>
  count < 1024 ** 3 ? `${Math.ceil(count / 1024 ** 2)} MiB` : `${(count / 1024 ** 3).toFixed(1)} GiB`

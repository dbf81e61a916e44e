import { createReadStream, statSync } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { parse } from 'csv-parse'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { number } from '../print.ts'

/** One contact's part of a CSV file. */
export interface CsvRecord {
  /** Where it begins, counted from 1. */
  readonly line: number
  readonly fields: readonly string[]
  /** The file ends in the middle of it, or only its last line break is missing. */
  readonly isLast: boolean
}

/** One line of a JSON Lines file. `value` is undefined if it is no JSON. */
export interface JsonLine {
  readonly line: number
  readonly value: unknown
}

export type Records =
  | {
      readonly format: 'csv'
      readonly heading: readonly string[]
      readonly records: AsyncIterable<readonly CsvRecord[]>
    }
  | { readonly format: 'json'; readonly records: AsyncIterable<readonly JsonLine[]> }

/**
 * Finds out by its beginning what a text is. `name` is that of the file.
 *
 * @throws {OperatorError} when it is neither CSV nor JSON Lines.
 */
export async function recordsOf(texts: AsyncGenerator<string>, name: string): Promise<Records> {
  let start = ''
  while (!/\S.*\n/.test(start) && start.length <= LONGEST) {
    const { done, value } = await texts.next()
    if (done) break
    start += value
  }
  if (start.trim() === '') throw new OperatorError(`${name} is empty.`)
  if (start.includes('\0')) throw new OperatorError(`${name} is not text: there are NUL bytes in it.`)
  const [first = ''] = start.trimStart().split('\n', 1)
  if (first.startsWith('[')) {
    throw new OperatorError(`${name} is one JSON array. JSON Lines, with one object a line, can be imported.`)
  }
  const whole = (async function* () {
    yield start
    yield* texts
  })()
  if (first.startsWith('{')) return { format: 'json', records: jsonLines(whole) }

  const all = csvRecords(whole, delimiterOf(first))
  const { value } = await all.next()
  const [heading, ...others] = value ?? []
  const records = (async function* () {
    yield others
    yield* all
  })()
  return { format: 'csv', heading: heading?.fields.map(field => field.trim()) ?? [], records }
}

/** The one that is found most often in the heading. */
function delimiterOf(heading: string): string {
  const count = (delimiter: string) => heading.split(delimiter).length
  return [',', ';', '\t'].reduce((best, each) => (count(each) > count(best) ? each : best))
}

async function* csvRecords(
  texts: AsyncIterable<string>,
  delimiter: string,
): AsyncGenerator<readonly CsvRecord[], void> {
  let read: CsvRecord[] = []
  const parser = parse({
    delimiter,
    record_delimiter: '\n',
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: LONGEST,
    // What is kept in the stream would be read one by one.
    on_record: (fields: string[], { lines }: { readonly lines: number }) => {
      const breaks = fields.reduce((sum: number, field: string) => sum + field.split('\n').length - 1, 0)
      read.push({ line: lines - breaks, fields, isLast: false })
    },
  })
  // Each write hears of it.
  parser.on('error', () => {})
  parser.resume()
  let [line, ends] = [0, false]
  const taken = () => {
    const records = read
    read = []
    line = records.at(-1)?.line ?? line
    return records
  }
  try {
    for await (const text of texts) {
      await new Promise<void>((resolve, reject) => parser.write(text, error => (error ? reject(error) : resolve())))
      if (read.length > 0) yield taken()
      if (text !== '') ends = text.endsWith('\n')
    }
    await new Promise<void>((resolve, reject) =>
      parser.end((error?: Error | null) => (error ? reject(error) : resolve())),
    )
    const last = taken()
    yield last.map((record, i) => ({ ...record, isLast: !ends && i === last.length - 1 }))
  } catch (error) {
    if (read.length > 0) yield taken()
    const { code } = error as { code?: string }
    if (code === 'CSV_MAX_RECORD_SIZE') throw tooLong(line + 1)
    if (code !== 'CSV_QUOTE_NOT_CLOSED') throw error
    throw new OperatorError(`A quotation mark that is opened in or after line ${line + 1} is never closed.`)
  }
}

async function* jsonLines(texts: AsyncIterable<string>): AsyncGenerator<readonly JsonLine[]> {
  let [line, rest] = [0, '']
  const read = (text: string): JsonLine[] => {
    line++
    return text.trim() === '' ? [] : [{ line, value: parsed(text) }]
  }
  for await (const text of texts) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    yield lines.flatMap(read)
    if (rest.length > LONGEST) throw tooLong(line + 1)
  }
  yield read(rest)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Characters of one line, or of one record with line breaks in it: it has to fit into memory. */
export const LONGEST = 1_048_576

export const tooLong = (line: number): OperatorError =>
  new OperatorError(`Line ${line} goes on for more than ${number(LONGEST)} characters.`)

/**
 * The text of a file, or with `-` of standard input, in parts; line breaks are `\n`. It is UTF-8, or UTF-16 if its first
 * bytes say so.
 *
 * @throws {OperatorError} when it cannot be read, or is not text.
 */
export async function* textOf(file: string, signal: AbortSignal): AsyncGenerator<string> {
  const name = nameOf(file)
  try {
    if (file !== '-' && statSync(file).isDirectory()) throw new OperatorError(`${name} is a folder.`)
    const bytes = addAbortSignal(signal, file === '-' ? process.stdin : createReadStream(file))
    yield* withLineFeeds(decoded(bytes))
  } catch (error) {
    if (error instanceof OperatorError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new OperatorError(`${name} is not UTF-8 text. Save it as UTF-8 (spreadsheets call it "CSV UTF-8").`)
    }
    if (code === 'ENOENT') throw new OperatorError(`There is no file ${file}.`)
    throw new OperatorError(`${name} cannot be read: ${message}`)
  }
}

/** The lines of such a file. */
export async function* linesOf(file: string, signal: AbortSignal): AsyncGenerator<string> {
  let [line, rest] = [1, '']
  for await (const text of textOf(file, signal)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    line += lines.length
    yield* lines
    if (rest.length > LONGEST) throw tooLong(line)
  }
  if (rest !== '') yield rest
}

export const nameOf = (file: string): string => (file === '-' ? 'Standard input' : file)

const UTF_16: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' }

/** Without a byte order mark. */
async function* decoded(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoderOf = (start: Buffer) => new TextDecoder(UTF_16[start.toString('hex', 0, 2)] ?? 'utf-8', { fatal: true })
  let start: Buffer = Buffer.alloc(0)
  let decoder: TextDecoder | undefined
  for await (const chunk of bytes) {
    start = decoder === undefined ? Buffer.concat([start, chunk]) : chunk
    if (start.length < 2) continue
    decoder ??= decoderOf(start)
    yield decoder.decode(start, { stream: true })
  }
  yield decoder === undefined ? decoderOf(start).decode(start) : decoder.decode()
}

async function* withLineFeeds(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let held = ''
  for await (const text of texts) {
    const all = held + text
    // Its line feed may come with the next part.
    held = all.endsWith('\r') ? '\r' : ''
    yield all.slice(0, all.length - held.length).replaceAll(/\r\n?/g, '\n')
  }
  if (held !== '') yield '\n'
}

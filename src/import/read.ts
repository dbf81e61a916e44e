import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { type CsvError, parse } from 'csv-parse'
import { OperatorError } from '../config/operator.ts'
import { LINE_MAX, linesOf, number } from '../operate/output.ts'

/** One record of a CSV file, or one line of JSON Lines. */
export interface FileRecord<Value> {
  /** Where it begins, counted from 1. */
  readonly line: number
  readonly value: Value
}

type FileRecords =
  | { readonly format: 'csv'; readonly records: AsyncGenerator<FileRecord<readonly string[]>> }
  /** `undefined`: the line is not JSON. */
  | { readonly format: 'json'; readonly records: AsyncGenerator<FileRecord<unknown>> }

const nameOf = (file: string): string => (file === '-' ? 'Standard input' : file)

/**
 * Reads a file, or with `-` standard input, as CSV or as JSON Lines.
 *
 * @throws {OperatorError} when it cannot be read, or is neither.
 */
export async function recordsOf(file: string, stdin: Readable): Promise<FileRecords> {
  const text = textOf(file, stdin)
  let start = ''
  while (!/[\r\n]/.test(start.trimStart()) && start.length <= LINE_MAX) {
    const { done, value } = await text.next()
    if (done) break
    start += value
  }
  const [first = ''] = start.trimStart().split(/[\r\n]/, 1)
  if (first === '') throw new OperatorError(`${nameOf(file)} is empty.`)
  if (start.includes('\0')) throw new OperatorError(`${nameOf(file)} is not text: there are NUL bytes in it.`)
  if (first.startsWith('[')) {
    throw new OperatorError(
      `${nameOf(file)} is one JSON array. JSON Lines, with one object a line, can be imported: jq -c '.[]' makes it.`,
    )
  }
  const whole = (async function* () {
    yield start
    yield* text
  })()
  if (first.startsWith('{')) return { format: 'json', records: jsonLines(whole) }
  return { format: 'csv', records: csvRecords(whole, delimiterOf(first)) }
}

/** The one that is most frequent in the heading. */
function delimiterOf(heading: string): string {
  const count = (delimiter: string) => heading.split(delimiter).length
  return [',', ';', '\t'].reduce((best, each) => (count(each) > count(best) ? each : best))
}

async function* csvRecords(
  text: AsyncIterable<string>,
  delimiter: string,
): AsyncGenerator<FileRecord<readonly string[]>> {
  const options = { relax_column_count: true, relax_quotes: true, skip_empty_lines: true, info: true }
  const parser = parse({ ...options, delimiter, max_record_size: LINE_MAX })
  const source = Readable.from(text)
  source.on('error', error => parser.destroy(error))
  let line = 1
  try {
    for await (const { record, info } of source.pipe(parser) as AsyncIterable<{
      readonly record: readonly string[]
      readonly info: { readonly lines: number }
    }>) {
      const breaks = record.reduce((sum, field) => sum + (field.match(/\r\n|\r|\n/g)?.length ?? 0), 0)
      line = info.lines
      yield { line: info.lines - breaks, value: record.map(field => field.replaceAll(/\r\n?/g, '\n')) }
    }
  } catch (error) {
    const { code } = error as CsvError
    if (code === 'CSV_MAX_RECORD_SIZE') {
      throw new OperatorError(`A line in or after line ${line + 1} has more than ${number(LINE_MAX)} characters.`)
    }
    if (code !== 'CSV_QUOTE_NOT_CLOSED') throw error
    throw new OperatorError(`A quotation mark that is opened in or after line ${line + 1} is never closed.`)
  }
}

async function* jsonLines(text: AsyncIterable<string>): AsyncGenerator<FileRecord<unknown>> {
  let line = 0
  for await (const each of linesOf(text)) {
    line++
    if (each.trim() !== '') yield { line, value: parsed(each) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** UTF-8, or UTF-16 if the first bytes say so, without a byte order mark. */
async function* textOf(file: string, stdin: Readable): AsyncGenerator<string> {
  const encodings: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' }
  let decoder: TextDecoder | undefined
  try {
    for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
      const bytes = Buffer.from(chunk)
      decoder ??= new TextDecoder(encodings[bytes.toString('hex', 0, 2)] ?? 'utf-8', { fatal: true })
      yield decoder.decode(bytes, { stream: true })
    }
    yield decoder?.decode() ?? ''
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new OperatorError(`${nameOf(file)} is not UTF-8 text. Save it as UTF-8 (spreadsheets call it "CSV UTF-8").`)
    }
    if (code === 'ENOENT') throw new OperatorError(`There is no file ${file}.`)
    throw new OperatorError(`${nameOf(file)} cannot be read: ${message}`)
  }
}

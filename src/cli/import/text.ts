import { createReadStream, statSync } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { number } from '../table.ts'

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

/** How many rows a file has below its headings, roughly; 0 where only reading it would tell. */
export async function rowsOf(file: string, headings: number): Promise<number> {
  if (file === '-' || !statSync(file).isFile()) return 0
  let [lines, last] = [0, 0x0a]
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    for (let at = chunk.indexOf(0x0a); at !== -1; at = chunk.indexOf(0x0a, at + 1)) lines++
    last = chunk.at(-1)!
  }
  // The last line may have no end.
  return lines + (last === 0x0a ? 0 : 1) - headings
}

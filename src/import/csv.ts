import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { parse } from 'csv-parse'
import { OperatorError } from '../config/operator.ts'
import { type Io, LINE_MAX, timeOf } from '../operate/output.ts'
import { isEmail, sourceParameters } from '../signup/contact.ts'
import { type Problem, parseSignup, parseSource } from '../signup/parse.ts'
import type { ImportRow } from './store.ts'

/** What a column can hold of a contact. */
const members = ['name', 'email', 'createdAt', ...sourceParameters] as const

/** The numbers of columns by what they hold; several are joined by a space. */
type Columns = Partial<Record<(typeof members)[number], readonly number[]>>

export interface ColumnOptions {
  /** Headings by members, if they are not the same; `+` joins two. */
  readonly map?: Readonly<Record<string, string>>
  /** Headings that may say who is not to be mailed, and are not read all the same. */
  readonly ignore?: readonly string[]
}

const STATUS =
  /status|unsub|bounce|opt(?:ed)?[ _-]?out|complain|suppress|blacklist|blocklist|^(?:state|subscribed?|(?:is[ _]?)?active|blocked|cleaned|deleted|archived|do[ _]?not[ _]?e?mail)$/i

/** Milliseconds. Clocks differ, and local times are up to 14 hours ahead. */
const DAY = 86_400_000

/**
 * Reads the contacts of a CSV file, or of standard input for `-`, with the lines that they are on. A problem never repeats a
 * value.
 *
 * @throws {OperatorError} when it cannot be read, or it is not clear which columns are meant.
 */
export async function* contactsIn(
  file: string,
  options: ColumnOptions,
  io: Io,
): AsyncGenerator<{ readonly line: number; readonly contact: ImportRow | Problem }> {
  const latest = Date.now() + DAY
  let heading: readonly string[] | undefined
  let columns: Columns = {}
  for await (const { line, fields } of recordsOf(file, io.stdin)) {
    if (heading === undefined) {
      heading = fields.map(name => name.trim())
      const isAddress = heading.length === 1 && isEmail(heading[0]!)
      columns = isAddress ? { email: [0] } : columnsIn(heading, options)
      if (columns.name === undefined) io.stderr.write('The part of each address before the @ is taken as the name.\n')
      if (!isAddress) continue
    }
    if (fields.length === heading.length) yield { line, contact: contactOf(fields, columns, latest) }
    else yield { line, contact: { problem: `it has ${fields.length} columns, and the heading ${heading.length}` } }
  }
  if (heading === undefined) throw new OperatorError(`${nameOf(file)} is empty.`)
}

function columnsIn(heading: readonly string[], { map, ignore = [] }: ColumnOptions): Columns {
  const columns: Columns = {}
  if (map === undefined) {
    const lower = heading.map(name => name.toLowerCase())
    for (const member of members) {
      const i = lower.indexOf(member.toLowerCase())
      if (i >= 0) columns[member] = [i]
    }
  }
  for (const [given, names] of Object.entries(map ?? {})) {
    const member = members.find(each => each === given)
    if (member === undefined) throw new OperatorError(`--map has no ${given}. There are ${members.join(', ')}.`)
    columns[member] = (heading.includes(names) ? [names] : names.split('+')).map(name => columnOf(name.trim(), heading))
  }
  // The heading is not shown: if it is missing, this is a person.
  if (columns.email === undefined || (map === undefined && columns.name === undefined && heading.length > 1)) {
    throw new OperatorError(
      'The first line must be a heading that has the columns email and name. Say which they are if they are called otherwise,' +
        ' such as --map email="Email Address" --map name="First Name+Last Name". With --map email=… alone, the part of each' +
        ' address before the @ is the name.',
    )
  }
  requireNoStatus(heading, Object.values(columns).flat(), ignore)
  return columns
}

function columnOf(name: string, heading: readonly string[]): number {
  const i = heading.indexOf(name)
  if (i === -1) throw new OperatorError(`The heading has no column ${name}.`)
  return i
}

/** Refuses a column that may say who must not be mailed, unless it is read or ignored. */
function requireNoStatus(heading: readonly string[], read: readonly number[], ignore: readonly string[]): void {
  for (const name of ignore) columnOf(name, heading)
  const statuses = heading.filter((name, i) => STATUS.test(name) && !read.includes(i) && !ignore.includes(name))
  if (statuses.length === 0) return
  throw new OperatorError(
    `The column ${statuses.join(' and ')} may say who must not be mailed any more. Take them out of the file, and add` +
      ` ${statuses.map(name => `--ignore "${name}"`).join(' ')}.`,
  )
}

/** By the rules for a signup. */
function contactOf(fields: readonly string[], columns: Columns, latest: number): ImportRow | Problem {
  const { email, name, createdAt, ...source } = Object.fromEntries(
    Object.entries(columns).map(([member, found]) => [
      member,
      found
        .map(i => fields[i])
        .join(' ')
        .trim(),
    ]),
  )
  const body = { name: name ?? email?.split('@')[0], email }
  const signup = parseSignup(body, parseSource(new URLSearchParams(source).toString()))
  if ('problem' in signup || !createdAt) return 'problem' in signup ? signup : { signup }
  const time = timeOf(createdAt)
  if (time >= 0 && time <= latest) return { signup, createdAt: new Date(time) }
  return { problem: 'createdAt must be a time such as 2026-11-22T09:30:00Z, from 1970 until now' }
}

const nameOf = (file: string): string => (file === '-' ? 'Standard input' : file)

async function* recordsOf(file: string, stdin: Readable) {
  const text = textOf(file, stdin)
  let line = 0
  try {
    let start = ''
    for (let next = await text.next(); !next.done; next = await text.next()) {
      start += next.value
      if (/[\r\n]/.test(start.trimStart()) || start.length > LINE_MAX) break
    }
    const [heading = ''] = start.trimStart().split(/[\r\n]/, 1)
    const parser = parse({
      delimiter: [',', ';', '\t'].reduce((best, each) => (count(each, heading) > count(best, heading) ? each : best)),
      info: true,
      max_record_size: LINE_MAX,
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
    })
    const whole = (async function* () {
      yield start
      yield* text
    })()
    const source = Readable.from(whole).on('error', error => parser.destroy(error))
    for await (const { record, info } of source.pipe(parser)) {
      line = info.lines
      yield { line, fields: record as readonly string[] }
    }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new OperatorError(`${nameOf(file)} is not UTF-8 text. Save it as UTF-8 (spreadsheets call it "CSV UTF-8").`)
    }
    const where = line === 0 ? '' : ` after line ${line}`
    throw new OperatorError(`${nameOf(file)} cannot be read${where}: ${message}`)
  }
}

const count = (delimiter: string, text: string): number => text.split(delimiter).length

async function* textOf(file: string, stdin: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
    yield decoder.decode(Buffer.from(chunk), { stream: true })
  }
  yield decoder.decode()
}

import { OperatorError } from '../config/operator.ts'
import { sourceParameters } from '../signup/contact.ts'
import type { RawContact } from './contact.ts'

/** Which columns of a CSV file have what of a contact. */

/** What `--map` can name. */
const members = ['name', 'email', 'createdAt', ...sourceParameters] as const

/** Numbers of columns, whose texts are joined by a space. Without a name, the part of the address before the @ is the name. */
export type Columns = Partial<Record<(typeof members)[number], readonly number[]>>

export interface ColumnOptions {
  /** Headings by members; `+` joins two. */
  readonly map?: Readonly<Record<string, string>>
  /** Headings that may say who is not to be mailed, and are not read all the same. */
  readonly ignore?: readonly string[]
}

/** Well-known headings, without case, spaces and punctuation. The earlier ones are preferred; `+` joins two. */
const wellKnown: Readonly<Record<string, readonly string[]>> = {
  email: ['email', 'emailaddress', 'youremail', 'mail'],
  name: [
    'name',
    'fullname',
    'yourname',
    'firstname+lastname',
    'fname+lname',
    'firstname+surname',
    'firstname',
    'fname',
  ],
  createdAt: [
    'createdat',
    'confirmtime',
    'optintime',
    'subscribedat',
    'submittedat',
    'signedupat',
    'joinedat',
    'dateadded',
    'signupdate',
  ],
  ...Object.fromEntries(sourceParameters.map(name => [name, [name.replace('_', '')]])),
}

const STATUS =
  /^(?:.*(?:status|unsub|bounce|optout|optedout|complain|suppress|blacklist|blocklist).*|state|subscribed|subscribe|active|isactive|blocked|cleaned|deleted|archived|donotemail)$/

const plain = (name: string): string => name.toLowerCase().replaceAll(/[ _.:?*-]/g, '')

/** @throws {OperatorError} when it is not clear which columns are meant. */
export function columnsIn(heading: readonly string[], { map, ignore = [] }: ColumnOptions): Columns {
  const columns = map === undefined ? guessed(heading.map(plain)) : mapped(heading, map)
  // The first line is not shown: without a heading it would be a person.
  if (columns.email === undefined) {
    throw new OperatorError(
      'The first line must be a heading, and has no well-known one for the addresses: say which it is with' +
        ' --map email=… and --map name=…',
    )
  }
  if (columns.name === undefined && heading.length > 1 && map === undefined) {
    throw new OperatorError(
      'The heading has no well-known column for the names: say which it is with --map name=… and --map email=…, or with' +
        ' --map email=… alone that the part of the address before the @ is the name.',
    )
  }
  requireNoStatus(heading, Object.values(columns).flat(), ignore)
  return columns
}

function guessed(heading: readonly string[]): Columns {
  const columns: Columns = {}
  for (const [member, known] of Object.entries(wellKnown)) {
    const names = known.map(each => each.split('+')).find(each => each.every(name => heading.includes(name)))
    if (names !== undefined) columns[member as keyof Columns] = names.map(name => numberOf(name, heading))
  }
  return columns
}

/** Reads `--map`. */
function mapped(heading: readonly string[], map: Readonly<Record<string, string>>): Columns {
  const columns: Columns = {}
  for (const [member, column] of Object.entries(map)) {
    if (!members.some(each => each === member)) {
      throw new OperatorError(`--map has no ${member}. There are ${members.join(', ')}.`)
    }
    const names = heading.includes(column) ? [column] : column.split('+').map(name => name.trim())
    columns[member as keyof Columns] = names.map(name => numberOf(name, heading))
  }
  return columns
}

function numberOf(name: string, heading: readonly string[]): number {
  const number = heading.indexOf(name)
  if (number === -1) throw new OperatorError(`The heading has no column ${name}.`)
  if (heading.includes(name, number + 1)) {
    throw new OperatorError(`The heading has the column ${name} more than once. Rename one of them, or use --map.`)
  }
  return number
}

/** Refuses a column that may say who must not be mailed, unless it is read or ignored. */
function requireNoStatus(heading: readonly string[], read: readonly number[], ignore: readonly string[]): void {
  const unknown = ignore.find(name => !heading.includes(name))
  if (unknown !== undefined) throw new OperatorError(`The heading has no column ${unknown}, which --ignore names.`)
  const statuses = heading.filter((name, i) => STATUS.test(plain(name)) && !read.includes(i) && !ignore.includes(name))
  if (statuses.length === 0) return
  if (heading.includes('state') && heading.includes('createdAt')) {
    throw new OperatorError(
      'This is an export of ours as CSV, which may have people who never confirmed or are held. Import the JSON export,' +
        ' which keeps their states: waitlist export --json --output contacts.jsonl',
    )
  }
  throw new OperatorError(
    `The column ${statuses.join(' and ')} may say who must not be mailed any more. Take them out of the file, and add` +
      ` ${statuses.map(name => `--ignore "${name}"`).join(' ')}.`,
  )
}

/** What a line has of a contact. */
export function rawContact(fields: readonly string[], columns: Columns): RawContact {
  const { name, email, createdAt, ...source } = Object.fromEntries(
    Object.entries(columns).map(([member, numbers]) => [
      member,
      numbers
        .map(i => fields[i] ?? '')
        .join(' ')
        .trim(),
    ]),
  )
  return { name: name ?? email?.split('@')[0], email, createdAt, source }
}

/** Well-known headings alone, so there is nothing in it that a terminal would not just show. */
export function describeColumns(columns: Columns, heading: readonly string[]): string {
  const guesses = Object.entries(columns).map(
    ([member, found]) => `${member} is ${found.map(i => `"${heading[i]}"`).join(' and ')}`,
  )
  return `By the heading, ${guesses.join('; ')}. Other columns are not read. --map says it otherwise.\n`
}

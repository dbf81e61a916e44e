import { OperatorError } from '../config/operator.ts'
import { sourceParameters } from '../signup/contact.ts'
import type { RawContact } from './contact.ts'

/** Which columns of a CSV file have what of a contact. */

/** What `--map` can name. */
const members = ['name', 'email', 'createdAt', ...sourceParameters] as const
type Member = (typeof members)[number]

/** Numbers of columns, whose texts are joined by a space. Without a name, the part of the address before the @ is the name. */
export type Columns = Readonly<Partial<Record<Member, readonly number[]>>>

export interface ColumnOptions {
  /** Headings by members. */
  readonly map?: Readonly<Record<string, string>>
  /** Headings that may say who is not to be mailed, and are not read all the same. */
  readonly ignore?: readonly string[]
}

/** @throws {OperatorError} when it is not clear which columns are meant. */
export function columnsIn(heading: readonly string[], { map, ignore = [] }: ColumnOptions): Columns {
  const unknown = ignore.find(name => !heading.includes(name))
  if (unknown !== undefined) throw new OperatorError(`The heading has no column ${unknown}, which --ignore names.`)
  const columns = map === undefined ? guessed(heading) : mapped(heading, map)
  const read = Object.values(columns).flat()
  const statuses = heading.filter((name, i) => STATUS.test(plain(name)) && !read.includes(i) && !ignore.includes(name))
  if (statuses.length === 0) return columns
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

const STATUS =
  /^(?:.*(?:status|unsub|bounce|optout|optedout|complain|suppress|blacklist|blocklist).*|state|subscribed|subscribe|active|isactive|blocked|cleaned|deleted|archived|donotemail)$/

/** What a line has of a contact. */
export function rawContact(fields: readonly string[], columns: Columns): RawContact {
  const text = (member: Member) =>
    columns[member]
      ?.map(i => fields[i] ?? '')
      .join(' ')
      .trim()
  const email = text('email')
  const source = Object.fromEntries(sourceParameters.map(parameter => [parameter, text(parameter)]))
  return {
    name: columns.name === undefined ? email?.split('@')[0] : text('name'),
    email,
    createdAt: text('createdAt'),
    source,
  }
}

/** Reads `--map`. Two headings with `+` in between are joined. */
function mapped(heading: readonly string[], map: Readonly<Record<string, string>>): Columns {
  const columns: Partial<Record<Member, readonly number[]>> = {}
  for (const [member, column] of Object.entries(map)) {
    if (!members.some(each => each === member)) {
      throw new OperatorError(`--map has no ${member}. There are ${members.join(', ')}.`)
    }
    const names = heading.includes(column) ? [column] : column.split('+').map(name => name.trim())
    for (const name of names) {
      const count = heading.filter(each => each === name).length
      if (count === 0) throw new OperatorError(`The heading has no column ${name}, which --map names.`)
      if (count > 1) throw new OperatorError(`The heading has the column ${name} more than once. Rename one of them.`)
    }
    columns[member as Member] = names.map(name => heading.indexOf(name))
  }
  if (columns.email === undefined) throw new OperatorError('--map must say where the addresses are: add --map email=…')
  return columns
}

/** Well-known headings, without case, spaces and punctuation. The earlier ones are preferred. */
const headings: Readonly<Partial<Record<Member, readonly (string | readonly string[])[]>>> = {
  email: ['email', 'emailaddress', 'youremail', 'mail'],
  name: [
    'name',
    'fullname',
    'yourname',
    ['firstname', 'lastname'],
    ['fname', 'lname'],
    ['firstname', 'surname'],
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

const plain = (name: string): string => name.toLowerCase().replaceAll(/[ _.:?*-]/g, '')

/** Guesses by the headings of other tools. */
function guessed(heading: readonly string[]): Columns {
  const there = heading.map(plain)
  const columns: Partial<Record<Member, readonly number[]>> = {}
  for (const [member, known] of Object.entries(headings)) {
    const names = known
      .map(each => (typeof each === 'string' ? [each] : each))
      .find(each => each.every(name => there.includes(name)))
    if (names === undefined) continue
    if (names.some(name => there.indexOf(name) !== there.lastIndexOf(name))) {
      throw new OperatorError(
        `The heading has more than one column for the ${member}. Rename one of them, or use --map.`,
      )
    }
    columns[member as Member] = names.map(name => there.indexOf(name))
  }
  // The first line is not shown: without a heading it would be a person.
  if (columns.email === undefined) {
    throw new OperatorError(
      'The first line must be a heading, and has no well-known one for the addresses: say which it is with' +
        ' --map email=… and --map name=…',
    )
  }
  if (columns.name === undefined && heading.length > 1) {
    throw new OperatorError(
      'The heading has no well-known column for the names: say which it is with --map name=… and --map email=…, or with' +
        ' --map email=… alone that the part of the address before the @ is the name.',
    )
  }
  return columns
}

/** Well-known headings alone, so there is nothing in it that a terminal would not just show. */
export function describeColumns(columns: Columns, heading: readonly string[]): string {
  const guesses = Object.entries(columns).map(
    ([member, found]) => `${member} is ${found.map(i => `"${heading[i]}"`).join(' and ')}`,
  )
  return `By the heading, ${guesses.join('; ')}. Other columns are not read. --map says it otherwise.\n`
}

import type { ImportRow } from '../../import/store.ts'
import {
  CODE_LENGTH,
  type ContactState,
  contactStates,
  type HoldReason,
  holdReasons,
  isCode,
  sourceParameters,
} from '../../signup/contact.ts'
import { type Problem, parseSignup, parseSource } from '../../signup/parse.ts'
import { laterColumns, withoutApostrophe } from '../formats.ts'
import type { CsvRecord, JsonLine } from './records.ts'

/** What is wrong with a line. */
export interface BadLine {
  readonly line: number
  /** Without what the line says. */
  readonly reason: string
}

/** One line: a contact, or why it is none. */
export type Line = ImportRow | { readonly bad: BadLine; readonly given: Given }

/** Reads the lines of a CSV file. `isOurs`: it is an export of ours. */
export function csvReader(columns: Columns, width: number, isOurs: boolean): (record: CsvRecord, now: number) => Line {
  return ({ line, fields, isLast }, now) => {
    const given = givenIn(fields, columns, isOurs)
    if (fields.length !== width) {
      return { bad: { line, reason: `it has ${fields.length} columns, and the heading ${width}` }, given }
    }
    // Ours ends with a line break, and a part of a code is a code.
    if (isLast && isOurs) return { bad: { line, reason: 'the file ends before this line does' }, given }
    return lineOf(line, given, now)
  }
}

export function readJsonLine({ line, value }: JsonLine, now: number): Line {
  if (typeof value === 'object' && value !== null) return lineOf(line, value, now)
  return { bad: { line, reason: 'it must be a JSON object' }, given: {} }
}

function lineOf(line: number, given: Given, now: number): Line {
  const entry = entryOf(given, now)
  return 'problem' in entry ? { bad: { line, reason: entry.problem }, given } : entry
}

function givenIn(fields: readonly string[], columns: Columns, isOurs: boolean): Given {
  const text = (member: Member): string | undefined => {
    const parts = columns[member]?.map(i => fields[i] ?? '')
    return isOurs ? parts?.map(withoutApostrophe).join(' ') : parts?.join(' ').trim()
  }
  // An export of ours has the reason behind the state.
  const [state, reason] = isOurs ? (text('state')?.split(':', 2) ?? []) : [text('state')]
  const source = Object.fromEntries(sourceParameters.map(parameter => [parameter, text(parameter)]))
  return {
    id: text('id'),
    name: text('name'),
    email: text('email'),
    state,
    reason,
    createdAt: text('createdAt'),
    source,
    invitedAt: text('invitedAt'),
    code: text('code'),
    redeemedAt: text('redeemedAt'),
    confirmedAt: text('confirmedAt'),
  }
}

/** A contact as a file has it: nothing is known of the values. What is empty or null is absent. */
export interface Given {
  readonly id?: unknown
  readonly name?: unknown
  readonly email?: unknown
  readonly state?: unknown
  readonly reason?: unknown
  readonly createdAt?: unknown
  readonly source?: unknown
  readonly invitedAt?: unknown
  readonly code?: unknown
  readonly redeemedAt?: unknown
  readonly confirmedAt?: unknown
}

/** UUIDv7 (RFC 9562 §5.7) as we write it. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Reads one contact by the rules for a signup. A problem never repeats what was given. */
export function entryOf(given: Given, now: number): ImportRow | Problem {
  const { id, name, email, state, reason, createdAt, source } = given
  const signup = parseSignup({ name, email })
  if ('problem' in signup) return signup
  if (!isAbsent(id) && !(typeof id === 'string' && UUID.test(id))) {
    return { problem: 'id must be a UUID of version 7 in lower case' }
  }
  if (!isAbsent(state) && !contactStates.includes(state as ContactState)) {
    return { problem: `state must be ${oneOf(contactStates)}` }
  }
  if (state === 'held' ? !holdReasons.includes(reason as HoldReason) : !isAbsent(reason)) {
    return { problem: `reason belongs to a contact that is held, and must be ${oneOf(holdReasons)}` }
  }
  const time = pastTimeOf(createdAt, now)
  if (Number.isNaN(time)) return { problem: `createdAt ${A_TIME}` }
  const invitation = invitationOf(given, now)
  if (invitation !== undefined && 'problem' in invitation) return invitation
  const confirmed = pastTimeOf(given.confirmedAt, now)
  if (Number.isNaN(confirmed)) return { problem: `confirmedAt ${A_TIME}` }
  if (confirmed !== undefined && state === 'unconfirmed') {
    return { problem: 'confirmedAt belongs to a contact that is confirmed' }
  }
  if (!isAbsent(source) && typeof source !== 'object') return { problem: 'source must be an object' }
  return {
    signup,
    id: isAbsent(id) ? undefined : (id as string),
    state: isAbsent(state) ? 'listed' : (state as ContactState),
    reason: isAbsent(reason) ? undefined : (reason as HoldReason),
    createdAt: time === undefined ? undefined : new Date(time),
    source: sourceOf((source ?? {}) as object),
    invitation,
    confirmedAt: confirmed === undefined ? undefined : new Date(confirmed),
  }
}

function invitationOf({ state, invitedAt, code, redeemedAt }: Given, now: number): ImportRow['invitation'] | Problem {
  const [at, redeemed] = [pastTimeOf(invitedAt, now), pastTimeOf(redeemedAt, now)]
  if (state !== 'invited') {
    if (isAbsent(invitedAt) && isAbsent(code) && isAbsent(redeemedAt)) return undefined
    return { problem: 'invitedAt, code and redeemedAt belong to a contact that is invited' }
  }
  if (typeof code !== 'string' || !isCode(code)) {
    return { problem: `code must be that of an invitation: ${CODE_LENGTH} letters, digits, dashes and underscores` }
  }
  if (at === undefined || Number.isNaN(at)) return { problem: `invitedAt ${A_TIME}` }
  if (Number.isNaN(redeemed)) return { problem: `redeemedAt ${A_TIME}` }
  return { code, at: new Date(at), redeemedAt: redeemed === undefined ? undefined : new Date(redeemed) }
}

const A_TIME = 'must be a time such as 2026-11-22T09:30:00Z, from 1970 until now'

/** "a, b or c". */
const oneOf = (words: readonly string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === ''

/** Milliseconds. Clocks differ, and local times are up to 14 hours ahead. */
const DAY = 86_400_000

/** Milliseconds since 1970; undefined: it is absent; NaN: it is none of the past. */
function pastTimeOf(given: unknown, now: number): number | undefined {
  if (isAbsent(given)) return undefined
  const time = timeOf(given)
  return time >= 0 && time <= now + DAY ? time : Number.NaN
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(?: ?(Z|UTC|[+-]\d\d(?::?\d\d)?))?)?$/i

/** Milliseconds since 1970 for a time in ISO 8601, or as tools write it; in UTC unless it has an offset. Otherwise NaN. */
function timeOf(given: unknown): number {
  const [, day, minute = '00:00', second = ':00', zone = 'Z'] =
    (typeof given === 'string' && TIME.exec(given.trim())) || []
  // A day that does not exist would be taken for one of the next month.
  if (day === undefined || new Date(`${day}T00:00Z`).getUTCDate() !== Number(day.slice(8))) return Number.NaN
  const [, hours, minutes = '00'] = /^([+-]\d\d):?(\d\d)?$/.exec(zone) ?? []
  return Date.parse(`${day}T${minute}${second.slice(0, 7)}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`)
}

/** Cleaned like the source of a signup. */
function sourceOf(given: object): ImportRow['source'] {
  const values = Object.entries(given).filter(([, value]) => typeof value === 'string' && value !== '')
  return values.length === 0 ? undefined : parseSource(new URLSearchParams(values).toString())
}

/** What `--map` can name. */
const mappable = ['name', 'email', 'createdAt', ...sourceParameters] as const
/** Our own export begins with these columns; those of the source and of what came later may follow. */
const ours = ['id', 'name', 'email', 'state', 'createdAt'] as const

export type Member = (typeof mappable)[number] | (typeof ours)[number] | (typeof laterColumns)[number]

/** Where the members are found: numbers of columns, whose texts are joined by a space. */
export type Columns = Readonly<Partial<Record<Member, readonly number[]>>>

/** Why no columns were found. */
export interface Unclear {
  readonly unclear: string
}

/** The columns of our own export; undefined: it is the file of another tool. */
export function ownColumns(heading: readonly string[]): Columns | undefined {
  const known: readonly string[] = [...ours, ...sourceParameters, ...laterColumns]
  const isOurs = ours.every((name, i) => heading[i] === name) && heading.every(name => known.includes(name))
  if (!isOurs || new Set(heading).size < heading.length) return undefined
  return Object.fromEntries(heading.map((name, i) => [name, [i]]))
}

/** Reads `--map`. A name of two columns with `+` in between means both. */
export function mappedColumns(heading: readonly string[], map: Readonly<Record<string, string>>): Columns | Unclear {
  const columns: Partial<Record<Member, readonly number[]>> = {}
  for (const [member, column] of Object.entries(map)) {
    if (!mappable.some(each => each === member)) {
      return { unclear: `--map knows no member ${member}. There are ${mappable.join(', ')}.` }
    }
    const names = heading.includes(column) ? [column] : column.split('+').map(name => name.trim())
    for (const name of names) {
      const found = heading.filter(each => each === name).length
      if (found === 0) return { unclear: `The heading has no column ${name}, which --map names.` }
      if (found > 1) return { unclear: `The heading has the column ${name} more than once. Rename one of them.` }
    }
    columns[member as Member] = names.map(name => heading.indexOf(name))
  }
  const missing = (['name', 'email'] as const).filter(member => columns[member] === undefined)
  if (missing.length === 0) return columns
  return { unclear: `--map must say where both are: add ${missing.map(each => `--map ${each}=…`).join(' and ')}.` }
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
export function guessedColumns(heading: readonly string[]): Columns | Unclear {
  const there = heading.map(plain)
  const columns: Partial<Record<Member, readonly number[]>> = {}
  for (const [member, known] of Object.entries(headings)) {
    const names = known
      .map(each => (typeof each === 'string' ? [each] : each))
      .find(each => each.every(name => there.includes(name)))
    if (names === undefined) continue
    if (names.some(name => there.indexOf(name) !== there.lastIndexOf(name))) {
      return { unclear: `The heading has more than one column for the ${member}. Rename one of them, or use --map.` }
    }
    columns[member as Member] = names.map(name => there.indexOf(name))
  }
  // The first line is not shown: without a heading it would be a person.
  const missing = (['name', 'email'] as const).filter(member => columns[member] === undefined)
  if (missing.length === 0) return columns
  const maps = missing.map(member => `--map ${member}=…`).join(' and ')
  return {
    unclear:
      `The first line has no well-known heading for the ${missing.join(' and the ')} of a contact. It must be a heading;` +
      ` say with ${missing.length === 2 ? maps : `--map name=… and --map email=…`} which columns they are.`,
  }
}

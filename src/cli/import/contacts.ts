import type { Entry } from '../../app/operator.ts'
import { sourceParameters } from '../../waitlist/rules/contact.ts'
import { withoutApostrophe } from '../csv.ts'
import type { Columns, Member } from './columns.ts'
import { entryOf, type Given } from './entry.ts'
import type { CsvRecord, JsonLine } from './records.ts'
import type { BadLine } from './report.ts'

/** One line: a contact, or why it is none. */
export type Line = Entry | { readonly bad: BadLine; readonly given: Given }

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
  const [state, heldFor] = isOurs ? (text('state')?.split(':', 2) ?? []) : [text('state')]
  const source = Object.fromEntries(sourceParameters.map(parameter => [parameter, text(parameter)]))
  return {
    id: text('id'),
    name: text('name'),
    email: text('email'),
    state,
    heldFor,
    createdAt: text('createdAt'),
    source,
  }
}

import { type ContactFilter, operatorOf } from '../app/operator.ts'
import type { Config } from '../config/config.ts'
import { typed } from '../invocation.ts'
import { type Contact, sourceLabel } from '../waitlist/rules/contact.ts'
import { fail, misused } from './complain.ts'
import { exported } from './formats.ts'
import { print, toJson } from './print.ts'
import { type Columns, MOST, moment, moreThan, number, table } from './table.ts'

export interface ContactsOptions extends ContactFilter {
  readonly limit: number
  readonly json?: true
}

/** Writes the contacts that were added last to standard output, as a table or as JSON with one object a line, as an export has it. */
export async function listContacts(config: Config, { limit, json, ...filter }: ContactsOptions): Promise<void> {
  if (limit > MOST) return misused(`--limit is at most ${number(MOST)}; ${typed('waitlist export')} writes any number.`)
  // One more than requested, to know whether there are more.
  const found = await (await operatorOf(config)).addedLast(filter, limit + 1)
  const shown = found.slice(0, limit)
  if (shown.length === 0) return fail('There are no such contacts.')
  if (json) return print(shown.map(contact => toJson(exported(contact))))
  const more = found.length > limit ? [moreThan(limit)] : []
  return print([...table(columns, shown), ...more])
}

const columns: Columns<Contact> = {
  'signed up': ({ createdAt }) => moment(createdAt),
  state: ({ state }) => state,
  name: ({ name }) => name,
  address: ({ email }) => email,
  source: ({ source }) => sourceLabel(source) ?? '',
}

import { emailKey } from '../waitlist/rules/signup.ts'
import { SOURCE_LABEL } from './deliveries.ts'
import type { ContactFilter } from './operator/contacts.ts'

/** A filter, and the rows that it is limited to. */
export interface Which extends ContactFilter {
  readonly addresses?: readonly string[] | undefined
  readonly above?: number | string | undefined
  readonly upTo?: number | string | undefined
}

/** How an engine says it. */
export interface Dialect {
  /** The parameter with this number, counted from 1. */
  parameter(number: number): string
  time(time: Date): number | Date
  /** One text is a part of the other. */
  contains(text: string, part: string): string
  /** The domain of an address. */
  domain(column: string): string
  /** The column has one of the texts of a JSON array. */
  among(column: string, parameter: string): string
}

export interface Conditions {
  /** `where …`; nothing if all contacts are meant. */
  readonly where: string
  readonly values: (string | number | Date)[]
}

/** The same in both engines, but for the upper and lower case of names, which each folds in its own way. */
export function conditionsOf(which: Which, engine: Dialect): Conditions {
  const { search, since, until, state, heldFor, domain, source, addresses, above, upTo } = which
  const values: Conditions['values'] = []
  const given = (value: Conditions['values'][number]) => engine.parameter(values.push(value))
  const conditions = [
    above !== undefined && `contact.number > ${given(above)}`,
    upTo !== undefined && `contact.number <= ${given(upTo)}`,
    since !== undefined && `contact.created_at >= ${given(engine.time(since))}`,
    until !== undefined && `contact.created_at < ${given(engine.time(until))}`,
    // Not a parameter, so that the index on those who are pending is used.
    state !== undefined && `contact.state = '${state}'`,
    heldFor !== undefined && `contact.held_for = ${given(heldFor)}`,
    domain !== undefined && `${engine.domain('contact.email_key')} = ${given(emailKey(domain))}`,
    addresses !== undefined && engine.among('contact.email_key', given(JSON.stringify(addresses.map(emailKey)))),
    source !== undefined && `${SOURCE_LABEL} = ${given(source)}`,
    search !== undefined &&
      `(${engine.contains('contact.email_key', given(emailKey(search)))}` +
        ` or ${engine.contains('lower(contact.name)', `lower(${given(search)})`)})`,
  ].filter(each => each !== false)
  return { where: conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`, values }
}

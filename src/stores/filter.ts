import { emailKey } from '../waitlist/signup.ts'
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
  /** The value is found in the column: a pattern in which each place of the text has one of these characters. */
  finds(column: string, parameter: string): string
  pattern(places: readonly string[]): string
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

/** The same in both engines, none of whose own rules for upper and lower case, which differ, is used. */
export function conditionsOf(which: Which, engine: Dialect): Conditions {
  const { search, since, until, state, heldFor, domain, source, addresses, above, upTo } = which
  const values: Conditions['values'] = []
  const given = (value: Conditions['values'][number]) => engine.parameter(values.push(value))
  const found = search === undefined ? '' : given(engine.pattern(inAnyCase(search)))
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
    search !== undefined && `(${['name', 'email'].map(each => engine.finds(`contact.${each}`, found)).join(' or ')})`,
  ].filter(each => each !== false)
  return { where: conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`, values }
}

/** Beyond this code point no letter has a case. */
const CASES_END = 0x20000

/** For each character of a text, all that are equal to it but for their case. */
function inAnyCase(text: string): readonly string[] {
  const characters = Array.from({ length: CASES_END }, (_, code) => String.fromCodePoint(code))
  const all = characters.filter(each => each.isWellFormed()).join('')
  return [...text].map(character => {
    const equal = new RegExp(`\\u{${character.codePointAt(0)!.toString(16)}}`, 'giu')
    return all.match(equal)?.join('') ?? character
  })
}

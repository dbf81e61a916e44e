import type { ContactState } from '../../waitlist/rules/contact.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import { type Engine, inSteps, once, type Progress, type Sql } from '../sql.ts'
import { type ContactFilter, conditionsOf, type Which } from './contacts.ts'

/** Contacts that something is decided about: those for which all of it holds. */
export interface Candidates extends Omit<ContactFilter, 'state'> {
  readonly addresses?: readonly string[] | undefined
}

/**
 * How a change of many goes: in short steps, so that signups do not wait. Those that get into the state later than it began
 * stay as they are. What was done stays done if it is stopped, and the rest is as it was.
 */
export interface Course {
  readonly progress: Progress
  /** Ends it between two steps. */
  readonly signal: AbortSignal
}

export interface Decided {
  /** Contacts that were changed. */
  readonly done: number
  /** Of the given addresses those that were not in the state, and in which they were; null: they are not on the list. */
  readonly missing: readonly { readonly address: string; readonly state: ContactState | null }[]
}

interface Decision {
  /** The state that they are in. */
  readonly state: ContactState
  /** The most that are changed, the first of them; absent: all. */
  readonly most?: number | undefined
  /** Called before each step; throws if there is no room for it. */
  readonly look: () => void
  /** What the operator does if a connection is lost before the answer came. */
  readonly advice: string
  /** Changes those with the numbers in a JSON array that are in the state still. Returns how many there were. */
  change(sql: Sql, numbers: string): Promise<number>
}

/** By ascending number, so it ends also where what was changed is soon in the state again. */
export async function decide(
  engine: Engine,
  sql: Sql,
  which: Candidates,
  { progress, signal }: Course,
  { state, most: wanted = Number.POSITIVE_INFINITY, look, advice, change }: Decision,
): Promise<Decided> {
  const found = <Row>(what: string, limits: Omit<Which, keyof Candidates>, most?: number) => {
    const { where, values } = conditionsOf({ ...which, ...limits }, sql.dialect)
    const page = most === undefined ? '' : ` order by number limit $${values.length + 1}`
    return sql.all<Row>(`select ${what} from contact ${where}${page}`, most === undefined ? values : [...values, most])
  }
  const [all] = await found<{ last: number | null }>('max(number) as last', { state })
  const missing = which.addresses === undefined ? [] : await notIn(sql, state, which.addresses)
  let [done, above] = [0, 0]
  await inSteps(async rows => {
    if (signal.aborted) return false
    const most = Math.min(rows, engine.pace.most, wanted - done)
    // Apart from the change, since it needs no lock.
    const page = await found<{ number: number }>('number', { state, above, upTo: all!.last ?? 0 }, most)
    if (page.length === 0) return false
    look()
    const numbers = JSON.stringify(page.map(({ number }) => number))
    done += await once(sql, advice, sql => change(sql, numbers))
    above = page.at(-1)!.number
    progress(done)
    return page.length === most && done < wanted
  })
  return { done, missing }
}

async function notIn(sql: Sql, state: ContactState, addresses: readonly string[]): Promise<Decided['missing']> {
  const { where, values } = conditionsOf({ addresses }, sql.dialect)
  const rows = await sql.all<{ email_key: string; state: ContactState }>(
    `select email_key, state from contact ${where}`,
    values,
  )
  const states = new Map(rows.map(row => [row.email_key, row.state]))
  return addresses
    .map(address => ({ address, state: states.get(emailKey(address)) ?? null }))
    .filter(each => each.state !== state)
}

/** A query for the numbers in $1 of those who are still in the state: another operator may have just decided about them. */
export const stillIn = (state: ContactState, { dialect: { among, elements, forUpdate } }: Sql): string =>
  `select number from contact where ${among('number', elements('$1', 'whole'))} and state = '${state}' order by number ${forUpdate}`

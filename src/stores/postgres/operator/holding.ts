import { OperatorError } from '../../../waitlist/ports/log.ts'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import { IN_PLACE } from '../../deliveries.ts'
import { conditionsOf, type Which } from '../../filter.ts'
import {
  type Course,
  type Decided,
  type HeldFilter,
  type HeldRows,
  type Holding,
  heldCounts,
  heldStatements,
  throughAll,
} from '../../operator/holding.ts'
import { stored } from '../../operator/imports.ts'
import type { Postgres } from '../client.ts'
import { DURABLE } from '../sql.ts'
import { dialect } from './contacts.ts'
import { lend } from './open.ts'

export const holding = (url: string): Holding => ({
  countHeld: which =>
    lend(url, ({ attempt }) =>
      attempt(async query => {
        await query('begin isolation level repeatable read read only')
        const { where, values } = conditionsOf({ ...which, state: 'held' }, dialect)
        const { reasons, domains, hours } = heldStatements(where, GROUPS)
        const rows = {
          reasons: await query(reasons, values),
          domains: await query(domains, values),
          hours: await query(hours, values),
        }
        await query('commit')
        return heldCounts(rows as unknown as HeldRows)
      }),
    ),
  release: (which, announcement, course) => {
    const { state, eventName, destinations } = stored({ state: 'listed' }, announcement)
    return lend(url, database => decide(database, which, course, RELEASE, [state, eventName, destinations]))
  },
  discard: (which, course) => lend(url, database => decide(database, which, course, DISCARD, [])),
})

const LIMIT = 2_000

const GROUPS = {
  domain: dialect.domain('email_key'),
  hour: "date_bin('1 hour', created_at, timestamptz 'epoch')",
}

/** At another level, which a role may have by default, it would be refused where another operator does the same. */
const BEGIN = 'begin isolation level read committed'

/** $1: numbers. What another operator has just released or discarded is not held any more, and left out. */
const HELD = `
held as (
  select number from contact where number = any($1::bigint[]) and state = 'held' order by number for update
)`

/** A microsecond apart, so that they are due in order. Deliveries are rows of their own, so nothing is lost if one is there. */
const RELEASE = `
with ${HELD}, released as (
  update contact set state = $2, held_for = null, event_name = $3::text, event_at = case when $3::text is not null then now() end
  from held where contact.number = held.number returning contact.number
), ordered as (
  select number, now() + row_number() over (order by number) * interval '1 microsecond' as due_at from released
), told as (
  insert into delivery (contact, destination, due_at)
  select number, destination, due_at from ordered cross join unnest($4::text[]) as destination order by number ${IN_PLACE}
), ${DURABLE}
select count(number)::int as done from durable left join released on true`

const DISCARD = `
with ${HELD}, gone as (
  delete from contact using held where contact.number = held.number returning contact.number
), ${DURABLE}
select count(number)::int as done from durable left join gone on true`

async function decide(
  database: Postgres,
  which: HeldFilter,
  course: Course,
  change: string,
  values: readonly unknown[],
): Promise<Decided> {
  const of = <Row>(what: string, { above, upTo }: Pick<Which, 'above' | 'upTo'> = {}, order = '') => {
    const { where, values } = conditionsOf({ ...which, state: 'held', above, upTo }, dialect)
    return database.run<Row>(`select ${what} from contact ${where} ${order}`, values)
  }
  const [all] = await of<{ total: number; last: string | null }>('count(*)::int as total, max(number) as last')
  const held = which.addresses && new Set((await of<{ email_key: string }>('email_key')).map(row => row.email_key))
  const missing = which.addresses?.filter(address => !held?.has(emailKey(address))) ?? []
  const done = await throughAll(
    async (above, most) => {
      const page = await of<{ number: string }>(
        'number',
        { above, upTo: all!.last ?? 0 },
        `order by number limit ${most}`,
      )
      const numbers = page.map(({ number }) => number)
      const done = numbers.length === 0 ? 0 : await changed(database, change, [numbers, ...values])
      return { looked: page.length, done, last: numbers.length === 0 ? null : Number(numbers.at(-1)) }
    },
    { total: all!.total, limit: LIMIT },
    course,
  )
  return { done, missing }
}

function changed({ attempt }: Postgres, change: string, values: readonly unknown[]): Promise<number> {
  return attempt(async (query, again) => {
    if (again) throw new OperatorError('The connection was lost before the answer came. Run it again: it goes on.')
    await query(BEGIN)
    const [row] = await query<{ done: number }>(change, values)
    await query('commit')
    return row!.done
  })
}

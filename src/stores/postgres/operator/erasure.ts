import { OperatorError } from '../../../waitlist/ports/log.ts'
import type { ContactState } from '../../../waitlist/rules/contact.ts'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import { FARTHEST_LEASE } from '../../deliveries.ts'
import { ERASURE, erasureHash } from '../../erasure.ts'
import { type Erasure, TRACE_COLUMNS, type TraceRow, type Traces, tracesOf } from '../../operator/erasure.ts'
import { newSecret } from '../../secret.ts'
import type { Query } from '../client.ts'
import { DURABLE, ERASURES } from '../sql.ts'
import { lend } from './open.ts'

export const erasure = (url: string): Erasure => ({
  traces: email => lend(url, async ({ run }) => (await find(run, email))?.traces),
  erase: email =>
    lend(url, ({ attempt }) =>
      attempt(async (query, again) => {
        const traces = await erase(query, email)
        if (traces === undefined && again) {
          throw new OperatorError(
            'The connection was lost before the answer came; the contact is not on the list any more.',
          )
        }
        return traces
      }),
    ),
})

/** Undefined: there was no removal yet. */
export const erasureSecret = (query: Query): Promise<string | undefined> => secretOf(query, ERASURE)

export async function secretOf(query: Query, name: string): Promise<string | undefined> {
  const [row] = await query<{ value: string }>('select value from secret where name = $1', [name])
  return row?.value
}

interface Found {
  readonly number: string
  readonly traces: Traces
}

async function find(query: Query, email: string): Promise<Found | undefined> {
  const [contact] = await query<{ number: string; state: ContactState; created_at: Date }>(
    'select number, state, created_at from contact where email_key = $1',
    [emailKey(email)],
  )
  if (contact === undefined) return undefined
  const { number, state, created_at: createdAt } = contact
  const farthest = `now() + ${FARTHEST_LEASE} * interval '1 millisecond'`
  const rows = await query<TraceRow>(
    `select ${TRACE_COLUMNS}, token is not null and due_at > now() and due_at <= ${farthest} as leased` +
      ' from delivery where contact = $1 order by number',
    [number],
  )
  return { number, traces: tracesOf({ state, createdAt }, rows) }
}

async function erase(query: Query, email: string): Promise<Traces | undefined> {
  await query('begin isolation level read committed')
  await query(`with ${DURABLE} select from durable`)
  // An import that cannot see the removal yet must not decide meanwhile.
  await query(`select pg_advisory_xact_lock(${ERASURES})`)
  // In the order of settlements: first what is settled, then the contact.
  await query(
    'select from delivery where contact in (select number from contact where email_key = $1) order by number for update',
    [emailKey(email)],
  )
  const [held] = await query('select from contact where email_key = $1 for update', [emailKey(email)])
  const found = held === undefined ? undefined : await find(query, email)
  if (found !== undefined) {
    await query('insert into secret (name, value) values ($1, $2) on conflict do nothing', [ERASURE, newSecret()])
    // Not before the signup, even if the clock was set back since.
    await query(
      'with gone as (delete from contact where number = $1 returning created_at)' +
        ' insert into erased (hash, erased_at) select $2, greatest(clock_timestamp(), created_at) from gone' +
        ' on conflict (hash) do update set erased_at = greatest(erased.erased_at, excluded.erased_at)',
      [found.number, erasureHash((await erasureSecret(query))!, email)],
    )
  }
  await query('commit')
  return found?.traces
}

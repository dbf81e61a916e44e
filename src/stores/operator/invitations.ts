import { randomBytes } from 'node:crypto'
import type { Redeemable } from '../../waitlist/ports/invitations.ts'
import { type Engine, lend, type Sql } from '../sql.ts'
import { type Announcement, addDeliveries } from './announcement.ts'
import { conditionsOf } from './contacts.ts'
import { type Candidates, type Course, decide, stillIn } from './decide.ts'

/** Who is told of an invitation. */
export type InvitationNews = Pick<Announcement, 'eventName' | 'destinations'>

/** Of contacts that could be invited. */
export interface Invitable {
  readonly total: number
  /** When the first of them signed up, and the last; null: there is none. */
  readonly first: Date | null
  readonly last: Date | null
}

/** Whom the owner lets in. */
export const invitations = (engine: Engine) => ({
  /** Counts those who would be invited: the first `most`, in the order in which they came to the list. */
  countInvitable: (which: Candidates, most?: number): Promise<Invitable> =>
    lend(engine, 'reading', async sql => {
      const { where, values } = conditionsOf({ ...which, state: 'listed' }, sql.dialect)
      const limit = most === undefined ? '' : ` order by number limit $${values.length + 1}`
      const [row] = await sql.all<{ total: number; first: number | null; last: number | null }>(
        'select count(*) as total, min(created_at) as first, max(created_at) as last from' +
          ` (select created_at from contact ${where}${limit}) as invitable`,
        most === undefined ? values : [...values, most],
      )
      const timeOf = (time: number | null) => (time === null ? null : new Date(time))
      return { total: row!.total, first: timeOf(row!.first), last: timeOf(row!.last) }
    }),
  /**
   * Invites those who are listed, in the order in which they came to the list: the first `most`, or all. Each gets a code
   * and an event with its deliveries, in one transaction with the others of its step. Nobody is invited twice, also if two
   * operators invite at once: each then gets others.
   */
  invite: (which: Candidates, most: number | undefined, news: InvitationNews, course: Course) =>
    lend(engine, 'writing', sql =>
      decide(engine, sql, which, course, {
        state: 'listed',
        most,
        look: engine.requireRoom,
        advice: 'Some may be invited by now: "waitlist stats" says how many are.',
        change: (sql, numbers) => invite(sql, numbers, news),
      }),
    ),
  /** The address that a code belongs to. */
  addressOf: (code: string): Promise<string | undefined> =>
    lend(engine, 'reading', async sql => (await invitationOf(sql, code))?.email),
})

async function invite(sql: Sql, numbers: string, { eventName, destinations }: InvitationNews): Promise<number> {
  const { now, table } = sql.dialect
  const free = await sql.all<{ number: number }>(stillIn('listed', sql), [numbers])
  if (free.length === 0) return 0
  const codes = free.map(({ number }) => ({ number, code: randomBytes(16).toString('base64url') }))
  await sql.all(
    `update contact set state = 'invited', invited_at = ${now}, invite_name = $2, code = given.code` +
      ` from ${table('$1', { number: 'whole', code: 'text' })} as given where contact.number = given.number`,
    [JSON.stringify(codes), eventName],
  )
  await addDeliveries(sql, free, 'invited', destinations)
  return free.length
}

/** The invitation with this code. */
export async function invitationOf(sql: Sql, code: string): Promise<Redeemable | null> {
  const [row] = await sql.all<{ email: string; name: string; invited_at: number; redeemed_at: number | null }>(
    'select email, name, invited_at, redeemed_at from contact where code = $1',
    [code],
  )
  if (row === undefined) return null
  const { email, name, invited_at, redeemed_at } = row
  return {
    email,
    name,
    invitedAt: new Date(invited_at),
    redeemedAt: redeemed_at === null ? null : new Date(redeemed_at),
  }
}

/** The first time counts, so it may be repeated. `now`: null for the server's clock. */
export const redeem = (sql: Sql, code: string, now: Date | null): Promise<Redeemable | null> =>
  sql.transaction(async sql => {
    await sql.all(
      `update contact set redeemed_at = coalesce(cast($2 as timestamptz), ${sql.dialect.now})` +
        ' where code = $1 and redeemed_at is null',
      [code, now],
    )
    return invitationOf(sql, code)
  })

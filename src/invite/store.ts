import { randomBytes } from 'node:crypto'
import { addDeliveries, type SignupTargets } from '../store/activate.ts'
import { type Changed, changeContacts, lockInState } from '../store/bulk.ts'
import { type ContactFilter, conditionsOf } from '../store/contacts.ts'
import type { Database, Tx } from '../store/database.ts'

/** Who is notified of an invitation. */
export type InvitationTargets = Pick<SignupTargets, 'eventName' | 'destinations'>

/**
 * Counts those who would be invited: the first `most`, in the order in which they came to the list. `first` and `last`: when
 * the first of them signed up, and the last; null: there is none.
 */
export async function countInvitable(tx: Tx, filter: ContactFilter, most?: number) {
  const { where, values } = conditionsOf({ ...filter, state: 'listed' }, tx.dialect)
  const limit = most === undefined ? '' : ` order by number limit $${values.length + 1}`
  const [row] = await tx.all<{ total: number; first: number | null; last: number | null }>(
    'select count(*) as total, min(created_at) as first, max(created_at) as last from' +
      ` (select created_at from contact ${where}${limit}) as invitable`,
    most === undefined ? values : [...values, most],
  )
  return { total: row!.total, first: dateOf(row!.first), last: dateOf(row!.last) }
}

/**
 * Invites those who are listed, in the order in which they came to the list: the first `most`, or all. Each gets a code and an
 * event with its deliveries in one transaction. Nobody is invited twice, also if two operators invite at once.
 */
export const invite = (
  database: Database,
  filter: ContactFilter,
  most: number | undefined,
  targets: InvitationTargets,
): Promise<Changed> =>
  changeContacts(
    database,
    { ...filter, state: 'listed' },
    async (tx, numbers) => {
      database.requireRoom()
      return inviteSome(tx, numbers, targets)
    },
    most,
  )

async function inviteSome(
  tx: Tx,
  numbers: readonly number[],
  { eventName, destinations }: InvitationTargets,
): Promise<number> {
  const listed = await lockInState(tx, 'listed', numbers)
  if (listed.length === 0) return 0
  const codes = listed.map(number => ({ number, code: randomBytes(16).toString('base64url') }))
  await tx.run(
    "update contact set state = 'invited', invited_at = $2, invite_name = $3, code = given.code" +
      ` from ${tx.dialect.rows('$1', { number: 'bigint', code: 'text' })} as given where contact.number = given.number`,
    [JSON.stringify(codes), tx.now, eventName],
  )
  await addDeliveries(tx, listed, 'invited', destinations)
  return listed.length
}

/**
 * Invites those of the addresses again who are invited and have not redeemed: each keeps the code, and its deliveries
 * become new. `done` counts them.
 */
export const inviteAgain = (
  database: Database,
  addresses: readonly string[],
  { eventName, destinations }: InvitationTargets,
): Promise<Changed> =>
  changeContacts(database, { addresses, state: 'invited' }, async (tx, numbers) => {
    const rows = await tx.all<{ number: number }>(
      `update contact set invited_at = $2, invite_name = $3 where ${tx.dialect.among('number', '$1')}` +
        " and state = 'invited' and redeemed_at is null returning number",
      [numbers, tx.now, eventName],
    )
    const again = rows.map(({ number }) => number).sort((a, b) => a - b)
    await addDeliveries(tx, again, 'invited', destinations)
    return again.length
  })

/** An invitation, as the owner's app sees it; null: no contact has this code. */
export async function invitationOf(tx: Tx, code: string) {
  const [row] = await tx.all<{ email: string; name: string; invited_at: number; redeemed_at: number | null }>(
    'select email, name, invited_at, redeemed_at from contact where code = $1',
    [code],
  )
  if (row === undefined) return null
  const { email, name, invited_at, redeemed_at } = row
  return { email, name, invitedAt: new Date(invited_at), redeemedAt: dateOf(redeemed_at) }
}

/** The same, and redeems it if it was not yet: any number of calls leave one time. */
export async function redeem(tx: Tx, code: string): ReturnType<typeof invitationOf> {
  await tx.run('update contact set redeemed_at = $2 where code = $1 and redeemed_at is null', [code, tx.now])
  return invitationOf(tx, code)
}

const dateOf = (time: number | null): Date | null => (time === null ? null : new Date(time))

import type { Addressee } from '../../waitlist/ports/confirmations.ts'
import type { ContactState } from '../../waitlist/rules/contact.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import type { Sql } from '../sql.ts'
import { type Announcement, goOn } from './announcement.ts'

/** Confirms a contact. `now`: null for the server's clock. As `Confirmations.confirm`. */
export const confirm = (
  sql: Sql,
  { id, email }: Addressee,
  announcement: Announcement,
  now: Date | null,
): Promise<'now' | 'before' | null> =>
  sql.transaction(async sql => {
    const { forUpdate } = sql.dialect
    // In the order of settlements: first what is settled, then the contact.
    await sql.all(
      `select number from delivery where contact in (select number from contact where email_key = $1 and id = $2) and event = 'asked' ${forUpdate}`,
      [emailKey(email), id],
    )
    const [contact] = await sql.all<{ number: number; state: ContactState }>(
      `select number, state from contact where email_key = $1 and id = $2 ${forUpdate}`,
      [emailKey(email), id],
    )
    if (contact === undefined) return null
    const gone = await goOn(sql, 'unconfirmed', JSON.stringify([contact.number]), announcement, now)
    return gone > 0 ? 'now' : 'before'
  })

/** Deletes those who did not confirm in time. `now`: null for the server's clock. As `Confirmations.expire`. */
export async function expire(sql: Sql, within: number, most: number, now: Date | null): Promise<number> {
  const { after, among, unlocked } = sql.dialect
  const since = after(`coalesce(cast($1 as timestamptz), ${sql.dialect.now})`, 'cast($2 as double precision)')
  const late =
    `select number from contact where state = 'unconfirmed' and asked_at < ${since}` +
    // A count is looked up for each of them: PostgreSQL may read all deliveries for "not exists".
    " and (select count(*) from delivery where delivery.contact = contact.number and event = 'asked'" +
    ` and (delivery.state = 'waiting' or settled_at >= ${since})) = 0 order by asked_at limit $3 ${unlocked}`
  return (await sql.all(`delete from contact where ${among('number', late)} returning 1`, [now, -within, most])).length
}

import type pg from 'pg'
import { notEnded } from '../rows.ts'

/**
 * The mark of a move that has not ended: a comment on the table that tells of the schema. It needs no column, a dump has
 * it, too, and only the owner of the tables can set it.
 */
const MARK = 'waitlist move has not ended'

export const SET_MARK = `comment on table waitlist_schema is '${MARK}'`
export const REMOVE_MARK = 'comment on table waitlist_schema is null'

/** False where there are no tables yet. */
export const IS_MARKED = `select coalesce(obj_description(to_regclass('waitlist_schema'), 'pg_class') = '${MARK}', false) as marked`

/** @throws {CannotOpen} when a move into this database has not ended: contacts are there without their events. */
export async function requireMoved(client: pg.ClientBase, name: string): Promise<void> {
  const { rows } = await client.query(IS_MARKED)
  if (rows[0].marked) throw notEnded(name)
}

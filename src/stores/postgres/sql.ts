import type { Postgres, Statement } from './client.ts'

/** Parts that the statements of the PostgreSQL store have in common. */

/** $1 is a time, or null for the server's clock, which all instances share. */
export const NOW = 'coalesce($1::timestamptz, now())'
export const inMilliseconds = (parameter: string) =>
  `${NOW} + ${parameter}::double precision * interval '1 millisecond'`

/**
 * A statement that reads `durable` is synced to disk before it is answered, also where the server, the database or the
 * role says `synchronous_commit = off`. Set here and not for the session, which PgBouncer shares with others.
 */
export const DURABLE = `durable as (
  select case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end
)`

/** The position of an item in its batch, from 1. */
export interface Ordered {
  readonly ord: number
}

export function marked(length: number, rows: readonly Ordered[]): boolean[] {
  const marks = new Array<boolean>(length).fill(false)
  for (const { ord } of rows) marks[ord - 1] = true
  return marks
}

/**
 * The rows of a statement that takes effect once. Where the answer of an earlier try was lost, `earlier` finds what that
 * one did, which the statement then did not do again.
 */
export async function runOnce<Row>(
  { run }: Pick<Postgres, 'run'>,
  statement: Statement<Row>,
  earlier: Statement<Row>,
): Promise<readonly Row[]> {
  let lost = false
  const rows = await run<Row>(again => {
    lost = again
    return statement
  })
  return lost ? [...rows, ...(await run<Row>(() => earlier))] : rows
}

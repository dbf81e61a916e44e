/** Parts that several statements of the PostgreSQL store share. */

/** $1 is a time, or null for the server's clock, which all instances share. */
export const NOW = 'coalesce($1::timestamptz, now())'
export const inMilliseconds = (parameter: string) =>
  `${NOW} + ${parameter}::double precision * interval '1 millisecond'`

/**
 * A statement that reads `durable` is synced to disk before it is answered, even if the server, the database or the role
 * says `synchronous_commit = off`. Set here and not for the session, which PgBouncer may share with others.
 */
export const DURABLE = `durable as (
  select case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end
)`

/**
 * An advisory lock ("erasures" in ASCII): shared by imports while they decide about a batch, exclusive for a removal. So
 * nobody who is being erased is added by a statement that does not see it yet.
 */
export const ERASURES = '7310012293695300979'

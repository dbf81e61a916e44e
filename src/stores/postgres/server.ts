import type pg from 'pg'
import { CannotOpen, type Log, StoreUnavailable } from '../../waitlist/ports.ts'

/** What a server, a database and a role are like, as far as the store depends on it. */
export interface Facts {
  /** 150004 for 15.4. */
  readonly version: number
  readonly encoding: string
  readonly dates: string
  readonly readOnly: boolean
  readonly fsync: boolean
}

/** Identity columns came with 10; since 11 a column with a default is added without writing the table anew. */
const OLDEST = 11

const FACTS = `
select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
  current_setting('DateStyle') as dates, current_setting('transaction_read_only')::boolean as "readOnly",
  current_setting('fsync')::boolean as fsync`

/** Why the store cannot be kept there; null: it can. */
export function unfit({ version, encoding, dates, readOnly }: Facts): string | null {
  if (version < OLDEST * 10_000) {
    return `PostgreSQL ${OLDEST} or newer is needed; this one is ${Math.trunc(version / 10_000)}`
  }
  if (encoding !== 'UTF8')
    return `its encoding is ${encoding}; create one with encoding 'UTF8' (and template template0)`
  if (!dates.startsWith('ISO')) return `DateStyle is ${dates} for this role or database; it must be ISO`
  // As a server does that was a primary and is one no more; so this passes.
  if (readOnly) throw Object.assign(new Error('it is read only: a standby, or set so'), { code: '25006' })
  return null
}

/** @throws {CannotOpen} when the store cannot be kept on this server. */
export async function requireFit(client: pg.ClientBase, database: string): Promise<Facts> {
  const { rows } = await client.query(FACTS)
  const facts = rows[0] as Facts
  const why = unfit(facts)
  if (why !== null) throw new CannotOpen(`${database} cannot be used: ${why}.`)
  return facts
}

/** @throws {CannotOpen} when the tables cannot be made where they would be. */
export async function requireCreation(client: pg.ClientBase, database: string): Promise<void> {
  const text =
    'select current_user as role, current_schema() as schema,' +
    " coalesce(has_schema_privilege(current_schema(), 'create'), false) as may"
  const { role, schema, may } = (await client.query(text)).rows[0]
  if (may) return
  const where =
    schema === null ? 'its search_path names no schema that exists' : `it may not create in schema ${schema}`
  throw new CannotOpen(`The role "${role}" cannot make the tables in ${database}: ${where}.`)
}

/** What the service does to its tables. Identity columns need no right to their sequences. */
const rights = {
  contact: ['select', 'insert', 'update', 'delete'],
  event: ['select', 'insert'],
  registration: ['select', 'insert', 'update', 'delete'],
  delivery: ['select', 'insert', 'update'],
} as const

/** @throws {CannotOpen} when the role lacks a right that some signup, now or later, would fail for. */
export async function requireRights(client: pg.ClientBase, database: string): Promise<void> {
  const needed = Object.entries(rights).flatMap(([table, all]) => all.map(right => ({ table, right })))
  const { rows } = await client.query(
    'select current_user as role, table_name as table, right_name as right' +
      ' from unnest($1::text[], $2::text[]) with ordinality as t (table_name, right_name, ord)' +
      ' where not has_table_privilege(table_name, right_name) order by ord',
    [needed.map(({ table }) => table), needed.map(({ right }) => right)],
  )
  if (rows.length === 0) return
  const { role } = rows[0]
  const grants = Object.keys(rights).flatMap(table => {
    const missing = rows.filter(row => row.table === table).map(row => row.right)
    return missing.length === 0 ? [] : [`grant ${missing.join(', ')} on ${table} to "${role}";`]
  })
  throw new CannotOpen(`The role "${role}" lacks rights in ${database}. Its owner gives them with: ${grants.join(' ')}`)
}

/** One word about what no statement of ours can make good. */
export function warnOf({ fsync }: Facts, log: Log, database: string): void {
  if (!fsync) log.warn({ database }, 'fsync is off in PostgreSQL: a power cut can lose acknowledged signups')
}

/** Whether commits of this role wait for a synchronous standby that is away. The server does not end them by itself. */
export const COMMITS_WAIT =
  "exists (select from pg_stat_activity where usename = current_user and wait_event = 'SyncRep'" +
  " and query_start < now() - interval '2 seconds')"

/** @throws {StoreUnavailable} when they do: one more would only be one more connection that the server keeps. */
export async function requireCommits(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query(`select ${COMMITS_WAIT} as wait`)
  if (rows[0].wait) throw new StoreUnavailable(COMMITS_WAITING)
}

export const COMMITS_WAITING = 'PostgreSQL: commits wait for a synchronous standby that is away'

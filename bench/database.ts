import { startPostgres } from '../test/harness/postgres.ts'
import { withPostgresDatabase } from '../test/harness/postgres-database.ts'

export interface DatabaseServer {
  /** What the figures depend on, as reported by the server. */
  readonly facts: string
  readonly url: string
  remove(): Promise<void>
}

/** All other settings are the defaults. A checkpoint within a run would be noise. */
const settings = { shared_buffers: '1GB', max_wal_size: '8GB' }
const told = ['server_version', 'fsync', 'synchronous_commit', 'wal_sync_method', ...Object.keys(settings)]

/** PostgreSQL from npm on this machine, with no setting that trades safety for speed. */
export async function startDatabase(): Promise<DatabaseServer> {
  const server = await startPostgres({ settings })
  const url = await server.database()
  const facts = await withPostgresDatabase(url, async client => {
    const facts: string[] = []
    for (const name of told) facts.push(`${name} ${(await client.query(`show ${name}`)).rows[0][name]}`)
    return facts
  })
  if (!facts.includes('fsync on') || !facts.includes('synchronous_commit on'))
    throw new Error('PostgreSQL does not sync')
  return { facts: `PostgreSQL: ${facts.join(', ')}`, url, remove: () => server.remove() }
}

/** Copies the one contact that is there, under random addresses. */
export const fillDatabase = (url: string, contacts: number): Promise<unknown> =>
  withPostgresDatabase(url, async client => {
    await client.query(
      `insert into contact (id, name, email, email_key, state, created_at, event_name, event_at)
       select gen_random_uuid(), name, address, address, state, created_at, event_name, event_at
       from (select md5(random()::text) || '@example.com' as address from generate_series(1, $1::int)) as fresh
       cross join (select * from contact limit 1) as one`,
      [contacts],
    )
    await client.query('vacuum analyze contact')
  })

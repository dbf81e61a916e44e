import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../test/harness/postgres.ts'
import { withPostgresDatabase } from '../test/harness/postgres-database.ts'
import { processorTime } from './resources.ts'

/** What PostgreSQL has done since it was created. */
export interface Effort {
  /** Seconds of processor time of all its processes. */
  readonly time: number
  /** Bytes of write-ahead log. */
  readonly log: number
  /** Transactions that wrote, counted by their ids, since the statistics are a second late. */
  readonly commits: number
}

export interface DatabaseServer {
  /** What the figures depend on, as reported by the server. */
  readonly facts: string
  readonly url: string
  effort(): Promise<Effort>
  /** Bytes on disk for each contact, all tables and indexes. */
  contactSize(): Promise<number>
  remove(): Promise<void>
}

/** All other settings are the defaults. A checkpoint within a run would be noise. */
const settings = { shared_buffers: '1GB', max_wal_size: '8GB' }
const told = ['server_version', 'fsync', 'synchronous_commit', 'wal_sync_method', ...Object.keys(settings)]

/** PostgreSQL from npm on this machine, with no setting that trades safety for speed. */
export async function startDatabase(): Promise<DatabaseServer> {
  const server = await startPostgres({ settings })
  const url = await server.database()
  const asking = new pg.Client(url)
  await asking.connect()
  // The server stops while this connection is open.
  asking.on('error', () => {})
  const show = async (name: string): Promise<string> => (await asking.query(`show ${name}`)).rows[0][name]
  const facts: string[] = []
  for (const name of told) facts.push(`${name} ${await show(name)}`)
  if (!facts.includes('fsync on') || !facts.includes('synchronous_commit on'))
    throw new Error('PostgreSQL does not sync')
  const pid = Number(readFileSync(join(await show('data_directory'), 'postmaster.pid'), 'utf8').split('\n')[0])
  return {
    facts: `PostgreSQL: ${facts.join(', ')}`,
    url,
    async effort() {
      const { rows } = await asking.query(
        `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as log, pg_snapshot_xmax(pg_current_snapshot()) as next`,
      )
      return { time: processorTime(pid, true), log: Number(rows[0].log), commits: Number(rows[0].next) }
    },
    async contactSize() {
      const { rows } = await asking.query(
        `select sum(pg_total_relation_size(oid)) / (select count(*) from contact) as bytes
         from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
      )
      return Number(rows[0].bytes)
    },
    remove: () => server.remove(),
  }
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

import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../test/harness/postgres.ts'
import { familyMemory, familyTime } from './resources.ts'

/** What PostgreSQL has done since it was made. The difference of two is what lies between them. */
export interface Effort {
  /** Seconds of processor time of all its processes. */
  readonly cpu: number
  /** Bytes of write-ahead log. */
  readonly wal: number
  /** Transactions that wrote, by their numbers. The statistics would be a second late. */
  readonly commits: number
}

export interface DatabaseServer {
  /** What the figures depend on, as the server tells it. */
  readonly facts: string
  database(): Promise<string>
  effort(): Promise<Effort>
  /** Bytes, all processes together. */
  memory(): number
  checkpoint(): Promise<void>
  remove(): Promise<void>
}

/** Beside these the defaults hold. A checkpoint within a run would be noise; one is asked for where it is measured. */
const settings = { shared_buffers: '1GB', max_wal_size: '8GB' }
const told = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'jit']

/** PostgreSQL from npm on this machine, with nothing made faster that makes it less safe. */
export async function startDatabase(): Promise<DatabaseServer> {
  const server = await startPostgres({ settings })
  const url = `postgres://owner@127.0.0.1:${server.port}/postgres`
  const asking = new pg.Client(url)
  await asking.connect()
  // The server is removed while this connection is open.
  asking.on('error', () => {})
  const show = async (name: string): Promise<string> => (await asking.query(`show ${name}`)).rows[0][name]
  const facts: string[] = []
  for (const name of [...told, ...Object.keys(settings)]) facts.push(`${name} ${await show(name)}`)
  if (!facts.includes('fsync on') || !facts.includes('synchronous_commit on'))
    throw new Error('PostgreSQL does not sync')
  const data = await show('data_directory')
  const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])

  // Where this process ends before its time.
  const kill = () => {
    process.kill(pid, 'SIGQUIT')
    rmSync(dirname(data), { recursive: true, force: true })
  }
  process.once('exit', kill)

  return {
    facts: `PostgreSQL: ${facts.join(', ')}`,
    database: server.database,
    memory: () => familyMemory(pid),
    async effort() {
      const { rows } = await asking.query(
        `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as wal, pg_snapshot_xmax(pg_current_snapshot()) as next`,
      )
      return { cpu: familyTime(pid), wal: Number(rows[0].wal), commits: Number(rows[0].next) }
    },
    async checkpoint() {
      await asking.query('checkpoint')
    },
    async remove() {
      process.off('exit', kill)
      await server.remove()
    },
  }
}

export interface Size {
  readonly contacts: number
  /** Bytes for each contact: rows with their indexes, of all tables; and the index of the addresses alone. */
  readonly bytes: number
  readonly addressIndex: number
}

export async function sizeOf(url: string): Promise<Size> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(
    `select (select count(*) from contact) as contacts, sum(pg_total_relation_size(oid)) as bytes,
       pg_relation_size('contact_email_key_key') as index
     from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  await client.end()
  const contacts = Number(rows[0].contacts)
  return { contacts, bytes: Number(rows[0].bytes) / contacts, addressIndex: Number(rows[0].index) / contacts }
}

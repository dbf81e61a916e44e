import { CannotOpen } from '../../waitlist/ports.ts'
import type { Records } from '../records.ts'
import type { Postgres } from './client.ts'
import {
  listPostgresDeliveries,
  postgresBacklog,
  replayPostgresDeliveries,
  showPostgresDelivery,
} from './deliveries.ts'
import { readPostgresContacts, withPostgres } from './reader.ts'

/** The records in a PostgreSQL database. */
export const postgresRecords = (url: string): Records => ({
  contacts: () => readPostgresContacts(url),
  deliveries: filter => listPostgresDeliveries(url, filter),
  delivery: number => showPostgresDelivery(url, number),
  replay: wish => replayPostgresDeliveries(url, wish),
  backlog: () => postgresBacklog(url),
  look: () => withPostgres(url, look),
  async backUp() {
    throw new CannotOpen('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  },
})

async function look({ run }: Postgres): Promise<string> {
  const text =
    "select current_setting('server_version') as version, to_regclass('waitlist_schema') is not null as there," +
    ' pg_is_in_recovery() as standby'
  const [row] = await run<{ version: string; there: boolean; standby: boolean }>(() => ({ text, values: [] }))
  const { version, there, standby } = row!
  if (standby) throw new CannotOpen('It is a standby, which takes no signups. Name the primary.')
  return `PostgreSQL ${version}${there ? '' : ', in which the tables are made at the first start'}`
}

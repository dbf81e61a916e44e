import type { ClientBase } from 'pg'
import { CannotOpen } from '../../waitlist/ports.ts'
import { storeName } from '../place.ts'
import type { Records } from '../records.ts'
import {
  listPostgresDeliveries,
  postgresBacklog,
  replayPostgresDeliveries,
  showPostgresDelivery,
} from './deliveries.ts'
import { isCurrent } from './migrate.ts'
import { readPostgresContacts, withPostgres } from './reader.ts'
import { requireCreation, requireFit, requireRights } from './server.ts'

/** The records in a PostgreSQL database. */
export const postgresRecords = (url: string): Records => ({
  contacts: () => readPostgresContacts(url),
  deliveries: filter => listPostgresDeliveries(url, filter),
  delivery: number => showPostgresDelivery(url, number),
  replay: wish => replayPostgresDeliveries(url, wish),
  backlog: () => postgresBacklog(url),
  look: () => withPostgres(url, ({ lend }) => lend(client => look(client, storeName({ kind: 'postgres', url })))),
  async backUp() {
    throw new CannotOpen('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  },
})

/** All that a start asks too. */
async function look(client: ClientBase, database: string): Promise<string> {
  await requireFit(client, database)
  const current = await isCurrent(client, database)
  await (current ? requireRights : requireCreation)(client, database)
  const { rows } = await client.query("select current_setting('server_version') as version")
  return `PostgreSQL ${rows[0].version}${current ? '' : ', in which the tables are made at the first start'}`
}

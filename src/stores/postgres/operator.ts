import type { ClientBase } from 'pg'
import type { Operator } from '../operator.ts'
import { contacts } from './operator/contacts.ts'
import { copies } from './operator/copies.ts'
import { counting } from './operator/counting.ts'
import { deliveries } from './operator/deliveries.ts'
import { erasure } from './operator/erasure.ts'
import { holding } from './operator/holding.ts'
import { imports } from './operator/imports.ts'
import { integrity } from './operator/integrity.ts'
import { lend, nameOf } from './operator/open.ts'
import { pruning } from './operator/pruning.ts'
import { isCurrent } from './schema.ts'
import { requireCreation, requireFit, requireRights } from './server.ts'

/** The operator's side of a PostgreSQL database. Each call makes its own connection; services go on meanwhile. */
export const postgresOperator = (url: string): Operator => ({
  ...contacts(url),
  ...counting(url),
  ...deliveries(url),
  ...erasure(url),
  ...pruning(url),
  ...copies(url),
  ...integrity(url),
  ...imports(url),
  ...holding(url),
  look: () => lend(url, ({ lend }) => lend(client => look(client, nameOf(url)))),
})

/** The same checks as at a start. */
async function look(client: ClientBase, database: string): Promise<string> {
  await requireFit(client, database)
  const current = await isCurrent(client, database)
  await (current ? requireRights : requireCreation)(client, database)
  const { rows } = await client.query("select current_setting('server_version') as version")
  return `PostgreSQL ${rows[0].version}${current ? '' : ', in which the tables are made at the first start'}`
}

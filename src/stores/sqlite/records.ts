import { existsSync } from 'node:fs'
import type { Records } from '../records.ts'
import { backUp } from './backup.ts'
import { backlog, listDeliveries, replayDeliveries, showDelivery } from './deliveries.ts'
import { readContacts } from './reader.ts'

/** The records in a database file. */
export const sqliteRecords = (path: string): Records => ({
  contacts: async () => readContacts(path),
  deliveries: async filter => listDeliveries(path, filter),
  delivery: async number => showDelivery(path, number),
  replay: async wish => replayDeliveries(path, wish),
  backlog: async () => backlog(path),
  look: async () => (existsSync(path) ? look(path) : `${path}, which is made at the first start`),
  backUp: async target => backUp(path, target),
})

function look(path: string): string {
  // Whoever cannot count what waits cannot use the file.
  backlog(path)
  return path
}

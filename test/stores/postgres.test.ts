import { after } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { PlaceOptions } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, sqlOn } from '../harness/postgres-contacts.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { recordingLog } from '../harness/service.ts'
import { session } from './postgres.stage.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

// All that the service does, it does with the rights that docs/instances.md names.
const empty = await server.database()
const first = await postgresStore({ url: empty, eventName: 'waitlist.joined', log: recordingLog().log })
await first.close()
await server.run(empty, makeRole, ...grants(ROLE))

storeContract('PostgreSQL, as a role that owns nothing', async t => {
  const url = await server.database(empty)
  const open = (options?: PlaceOptions) =>
    postgresStore({ url: roleUrl(url), eventName: 'waitlist.joined', log: recordingLog().log, ...options })
  const hold = async () => {
    const other = await session(t, url)
    await other.query('begin; lock table contact in access exclusive mode')
    return () => other.query('rollback')
  }
  return { open, another: open, probe: () => contactsIn(url), sql: sqlOn(url), hold }
})

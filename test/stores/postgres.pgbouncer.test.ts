import { after, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { PlaceOptions } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn, sqlOn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

// `npm test` runs the contract without it.
if (!isSlow) test('PostgreSQL through PgBouncer', { skip: 'it runs in .ci/run' }, () => {})
else if (pgBouncerProgram === undefined) test('PostgreSQL through PgBouncer', { skip: noPgBouncer }, () => {})
else {
  // PgBouncer keeps its connections to the database of each test.
  const server = await startPostgres({ settings: { max_connections: '300' } })
  // Fewer than one store alone asks for: what belongs to a session would be seen to get lost.
  const bouncer = await startPgBouncer(server.port, 2)
  after(async () => {
    await bouncer.stop()
    await server.remove()
  })
  const empty = await server.database()
  const first = await postgresStore({ url: empty, eventName: 'waitlist.joined', log: recordingLog().log })
  await first.close()

  storeContract('PostgreSQL through PgBouncer in transaction mode', async () => {
    const url = await server.database(empty)
    const open = (options?: PlaceOptions) =>
      postgresStore({ url: bouncer.through(url), eventName: 'waitlist.joined', log: recordingLog().log, ...options })
    return { open, another: open, probe: () => contactsIn(url), sql: sqlOn(url) }
  })
}

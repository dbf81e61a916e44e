import { after, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { PlaceOptions } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { installedPostgres, noInstalledPostgres, startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, sqlOn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const programs = installedPostgres()
const missing = !isSlow
  ? 'it runs in .ci/run'
  : pgBouncerProgram === undefined
    ? noPgBouncer
    : programs === undefined && noInstalledPostgres

// `npm test` runs the contract without a pooler, on the PostgreSQL that npm brings.
if (missing) test('an older PostgreSQL, through PgBouncer', { skip: missing }, () => {})
else {
  // PgBouncer keeps its connections to the database of each test.
  const server = await startPostgres({ settings: { ...unsynced, max_connections: '300' }, programs })
  // Fewer than one store alone asks for: what belongs to a session would be seen to get lost.
  const bouncer = await startPgBouncer(server.port, 2)
  after(async () => {
    await bouncer.stop()
    await server.remove()
  })
  const empty = await server.database()
  const first = await postgresStore({ url: empty, eventName: 'waitlist.joined', log: recordingLog().log })
  await first.close()

  storeContract(`the PostgreSQL in ${programs}, through PgBouncer in transaction mode`, async () => {
    const url = await server.database(empty)
    const open = (options?: PlaceOptions) =>
      postgresStore({ url: bouncer.through(url), eventName: 'waitlist.joined', log: recordingLog().log, ...options })
    return { open, another: open, probe: () => contactsIn(url), sql: sqlOn(url) }
  })
}

import { after, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { MakePlace, PlaceOptions } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { installedPostgres, noInstalledPostgres, startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, emptyAt, sqlOn } from '../harness/postgres-database.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { session } from './postgres.stage.ts'

const open = (url: string, options?: PlaceOptions) =>
  postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log, ...options })

/** The database of the owner, which the store uses by another URL. */
const placeIn =
  (url: string, asService: string): MakePlace =>
  async t => {
    await emptyAt(url)
    const another = (options?: PlaceOptions) => open(asService, options)
    const hold = async () => {
      const other = await session(t, url)
      await other.query('begin; lock table contact in access exclusive mode')
      return () => other.query('rollback')
    }
    return { open: another, another, probe: () => contactsIn(url), sql: sqlOn(url), hold }
  }

// Its own, since its log is looked at, into which nobody else may write.
const server = await startPostgres({ settings: unsynced })
after(() => server.remove())
const url = await server.database()
await (await open(url)).close()
// All that the service does, it does with these rights.
await server.run(url, makeRole, ...grants(ROLE))
storeContract('PostgreSQL, as a role that owns nothing', placeIn(url, roleUrl(url)))

const programs = installedPostgres()
const missing = !isSlow
  ? 'it runs in .ci/run'
  : pgBouncerProgram === undefined
    ? noPgBouncer
    : programs === undefined && noInstalledPostgres

if (missing) test('an older PostgreSQL, through PgBouncer', { skip: missing }, () => {})
else {
  const older = await startPostgres({ settings: unsynced, programs })
  // Fewer than one store alone asks for: what belongs to a session would be seen to get lost.
  const bouncer = await startPgBouncer(older.port, 2)
  after(async () => {
    await bouncer.stop()
    await older.remove()
  })
  const url = await older.database()
  await (await open(url)).close()
  const name = `the PostgreSQL in ${programs}, through PgBouncer in transaction mode`
  storeContract(name, placeIn(url, bouncer.through(url)))
}

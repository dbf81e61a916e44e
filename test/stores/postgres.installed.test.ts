import { after, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { PlaceOptions } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { installedPostgres, noInstalledPostgres, startPostgres } from '../harness/postgres.ts'
import { contactsIn, sqlOn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const programs = installedPostgres()

// `npm test` runs the contract on the PostgreSQL that npm brings.
if (!isSlow) test('an older PostgreSQL', { skip: 'it runs in .ci/run' }, () => {})
else if (programs === undefined) test('an older PostgreSQL', { skip: noInstalledPostgres }, () => {})
else {
  const server = await startPostgres({ programs })
  after(() => server.remove())

  storeContract(`the PostgreSQL in ${programs}`, async () => {
    const url = await server.database()
    const open = (options?: PlaceOptions) =>
      postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log, ...options })
    return { open, another: open, probe: () => contactsIn(url), sql: sqlOn(url) }
  })
}

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { postgresRecords } from '../../src/stores/postgres/records.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteRecords } from '../../src/stores/sqlite/records.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { CannotOpen } from '../../src/waitlist/ports.ts'
import { recordsContract } from '../contracts/records.ts'
import { signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-contacts.ts'
import { messageProxy } from '../harness/postgres-messages.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'

const parts = { eventName: 'waitlist.joined', provider: 'provider', destinations: ['webhook', 'crm'] }

recordsContract(
  'a SQLite file',
  async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const store = await sqliteStore({ path, ...parts })
    t.after(() => store.close())
    return { store, records: sqliteRecords(path) }
  },
  async t => sqliteRecords(join(temporaryFolder(t), 'none.db')),
)

const server = await startPostgres()
after(() => server.remove())
const { log } = recordingLog()

recordsContract(
  'PostgreSQL',
  async t => {
    const url = await server.database()
    const store = await postgresStore({ url, log, ...parts })
    t.after(() => store.close())
    return { store, records: postgresRecords(url) }
  },
  async () => postgresRecords(await server.database()),
)

describe('what an operator asks, of PostgreSQL alone', { timeout: 60_000 }, () => {
  test('a look says what a start would refuse', async () => {
    const url = await server.database()
    const look = (at: string) => postgresRecords(at).look()
    await (await postgresStore({ url, log, ...parts })).close()
    await server.run(url, makeRole)
    await assert.rejects(look(roleUrl(url)), CannotOpen)
    await server.run(url, ...grants(ROLE))
    assert.match(await look(roleUrl(url)), /^PostgreSQL \d/)
    await server.run(url, `revoke insert on event from ${ROLE}`)
    await assert.rejects(look(roleUrl(url)), /grant insert on event/)
    await assert.rejects(look(roleUrl(await server.database())), /may not create in schema/)
    await server.run(url, 'update waitlist_schema set version = 99')
    await assert.rejects(look(url), /newer Waitlist/)
  })

  test('a replay whose answer is lost says so, rather than that there was nothing to do', async t => {
    const url = await server.database()
    const store = await postgresStore({ url, log, eventName: 'waitlist.joined', destinations: ['webhook'] })
    t.after(() => store.close())
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.settle((await store.claim('webhook', 1))[0]!, { is: 'abandoned', why: 'HTTP 404' })
    const proxy = await messageProxy(server.port)
    t.after(() => proxy.close())
    const sync = proxy.holdSync()
    await assert.rejects(postgresRecords(proxy.through(url)).replay({ abandoned: true }), /run it again/)
    sync()
    await until(
      async () => (await rowsIn<{ state: string }>(url, 'select state from delivery'))[0]!.state === 'waiting',
    )
  })
})

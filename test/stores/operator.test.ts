import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { checkAll } from '../../src/app/checks.ts'
import { operatorOf } from '../../src/app/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { postgresOperator } from '../../src/stores/postgres/engine.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { contactsContract } from '../contracts/operator.contacts.ts'
import { countingContract } from '../contracts/operator.counting.ts'
import { integrityContract } from '../contracts/operator.integrity.ts'
import { type Desk, operatorContract } from '../contracts/operator.ts'
import { signup } from '../contracts/store.place.ts'
import { sqlOn as sqlInFile } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { rowsIn, sqlOn } from '../harness/postgres-contacts.ts'
import { messageProxy } from '../harness/postgres-messages.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'

const parts = { eventName: 'waitlist.joined', provider: 'provider', destinations: ['webhook', 'crm'] }

const inFile = async (t: TestContext): Promise<Desk> => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const store = await sqliteStore({ path, ...parts })
  t.after(() => store.close())
  return { store, operator: sqliteOperator(path), sql: sqlInFile(path) }
}
const noFile = async (t: TestContext) => sqliteOperator(join(temporaryFolder(t), 'none.db'))

operatorContract('a SQLite file', inFile, noFile, '0', '(unixepoch() + 31536000) * 1000')
contactsContract('a SQLite file', inFile, '0')
countingContract('a SQLite file', inFile, String)
integrityContract('a SQLite file', inFile, '0')

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())
const { log } = recordingLog()

const inPostgres = async (t: TestContext): Promise<Desk> => {
  const url = await server.database()
  const store = await postgresStore({ url, log, ...parts })
  t.after(() => store.close())
  return { store, operator: postgresOperator(url), sql: sqlOn(url) }
}
const noTables = async () => postgresOperator(await server.database())

operatorContract('PostgreSQL', inPostgres, noTables, 'to_timestamp(0)', "now() + interval '1 year'")
contactsContract('PostgreSQL', inPostgres, 'to_timestamp(0)')
countingContract('PostgreSQL', inPostgres, time => `to_timestamp(${time} / 1000.0)`)
integrityContract('PostgreSQL', inPostgres, 'to_timestamp(0)')

/** A database that the first start has yet to fill. */
for (const [what, make] of [
  [
    'an empty SQLite file',
    async (t: TestContext) => {
      const path = join(temporaryFolder(t), 'waitlist.db')
      writeFileSync(path, '')
      return `sqlite:${path}`
    },
  ],
  ['an empty PostgreSQL database', () => server.database()],
] as const) {
  test(`before the first start ${what} is tried like any other, and nothing waits in it`, async t => {
    const settings = await readConfig({ DATABASE_URL: await make(t) })
    assert.ok('config' in settings)
    assert.deepEqual(
      (await checkAll(settings.config)).map(({ what, is }) => `${what}: ${is}`),
      ['database: ok', 'rate limit: ok', 'provider: ok', 'destinations: ok'],
    )
    assert.deepEqual(await (await operatorOf(settings.config)).backlog(), { pending: 0, waiting: {}, abandoned: 0 })
  })
}

describe('what an operator asks, of PostgreSQL alone', { timeout: 60_000 }, () => {
  test('a look says what a start would refuse', async () => {
    const url = await server.database()
    const look = (at: string) => postgresOperator(at).look()
    await (await postgresStore({ url, log, ...parts })).close()
    await server.run(url, makeRole)
    await assert.rejects(look(roleUrl(url)), OperatorError)
    await server.run(url, ...grants(ROLE))
    assert.match(await look(roleUrl(url)), /^PostgreSQL \d/)
    await server.run(url, `revoke insert on delivery from ${ROLE}`)
    await assert.rejects(look(roleUrl(url)), /grant insert on delivery/)
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
    // The commit arrives, and its answer does not.
    proxy.after(57, 'cut')
    const replaying = postgresOperator(proxy.through(url)).replay({ numbers: [1] })
    await assert.rejects(replaying, /run it again/)
    assert.deepEqual(proxy.end(), { side: 'frontend', name: 'Query' })
    await until(
      async () => (await rowsIn<{ state: string }>(url, 'select state from delivery'))[0]!.state === 'waiting',
    )
  })

  test('while the reader of an export rests, no transaction is open', async t => {
    const { store, operator, sql } = await inPostgres(t)
    await store.admit(signup('Ada', 'ada@example.com'))
    const open = "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in %'"
    for await (const { email } of await operator.contacts()) {
      assert.equal(email, 'ada@example.com')
      assert.deepEqual(await sql(open), [])
    }
  })
})

test('while the reader of an export of a SQLite file rests, the service can shorten its log', async t => {
  const { store, operator, sql } = await inFile(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  for await (const { email } of await operator.contacts()) {
    assert.equal(email, 'ada@example.com')
    const [checkpoint] = await sql('pragma wal_checkpoint(truncate)')
    assert.equal(checkpoint!.busy, 0)
  }
})

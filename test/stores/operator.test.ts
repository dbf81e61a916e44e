import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'

import { checkAll } from '../../src/app/checks.ts'
import { operatorOf } from '../../src/app/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { ERASURE, erasureHash } from '../../src/stores/operator/erasure.ts'
import { postgresOperator } from '../../src/stores/postgres/engine.ts'
import { ERASURES } from '../../src/stores/postgres/sql.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { course, type Desk, openDesk } from '../contracts/operator.desk.ts'
import { operatorContract } from '../contracts/operator.ts'
import { opened, type PlaceOptions, pendingNow, signup } from '../contracts/store.place.ts'
import { sqlOn as sqlInFile } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { emptyAt, rowsIn, sqlOn } from '../harness/postgres-database.ts'
import { messageProxy } from '../harness/postgres-messages.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { session } from './postgres.stage.ts'

const eventName = 'waitlist.joined'
const probe = { impossible: 'not needed' }
const { log } = recordingLog()

async function inFile(t: TestContext): Promise<Desk & { readonly path: string }> {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const open = (options?: PlaceOptions) => sqliteStore({ path, eventName, minimumFree: 0, ...options })
  return { path, place: { open, probe }, operator: sqliteOperator(path), sql: sqlInFile(path), time: String }
}
const noFile = async (t: TestContext) => sqliteOperator(join(temporaryFolder(t), 'none.db'))
operatorContract('a SQLite file', inFile, noFile, true)

const server = await sharedPostgres()
const open = (url: string, options?: PlaceOptions) => postgresStore({ url, eventName, log, ...options })

async function made(): Promise<string> {
  const url = await server.database()
  await (await open(url)).close()
  return url
}

const url = await made()
const time = (milliseconds: number) => `to_timestamp(${milliseconds} / 1000.0)`
const deskAt = (url: string): Desk => ({
  place: { open: options => open(url, options), probe },
  operator: postgresOperator(url),
  sql: sqlOn(url),
  time,
})

async function onServer(): Promise<Desk> {
  await emptyAt(url)
  return deskAt(url)
}
const noTables = async () => postgresOperator(await server.database())
operatorContract('PostgreSQL', onServer, noTables, false)

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
    assert.deepEqual(await (await operatorOf(settings.config)).backlog(), {
      unconfirmed: 0,
      pending: 0,
      waiting: {},
      abandoned: 0,
    })
  })
}

describe('what an operator does with a SQLite file alone', () => {
  test('without a file nothing is made, neither by a question nor by a backup', async t => {
    const folder = temporaryFolder(t)
    const { look, contacts, replay, backUp } = sqliteOperator(join(folder, 'none.db'))
    assert.match(await look(), /made at the first start/)
    for (const ask of [contacts, () => replay({ abandoned: true }), () => backUp(join(folder, 'copy.db'))]) {
      await assert.rejects(ask, /^OperatorError: There is no database at /)
    }
    assert.deepEqual(readdirSync(folder), [])
  })

  test('while the service runs, the name and address of an erased person leave the file and its log', async t => {
    const { path, place, operator } = await inFile(t)
    const store = await opened(place, t)
    const [name, email] = ['Ada of Lovelace', 'countess@example.com']
    await store.admit(signup('Visitor', 'first@example.com'))
    await store.admit(signup(name, email))
    await store.admit(signup('Visitor', 'last@example.com'))
    const text = () => ['', '-wal'].map(ending => readFileSync(path + ending, 'latin1')).join('')
    assert.ok(text().includes(name) && text().includes(email))
    await operator.erase(email)
    assert.ok(!text().includes(name) && !text().includes(email))
    assert.ok(text().includes('last@example.com'))
    assert.equal((await store.admit(signup('Visitor', 'next@example.com'))).is, 'listed now')
  })
})

describe('what an operator does with PostgreSQL alone', () => {
  test('a look says what a start would refuse', async () => {
    const url = await made()
    const look = (at: string) => postgresOperator(at).look()
    await server.run(url, makeRole)
    await assert.rejects(look(roleUrl(url)), OperatorError)
    await server.run(url, ...grants(ROLE))
    assert.match(await look(roleUrl(url)), /^PostgreSQL \d/)
    await server.run(url, 'update waitlist_schema set version = 99')
    await assert.rejects(look(url), /newer Waitlist/)
  })

  test('a replay whose answer is lost says so, rather than that there was nothing to do', async t => {
    const { store } = await openDesk(onServer, t, { provider: null, destinations: ['webhook'] })
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
    const { store, operator, sql } = await openDesk(onServer, t)
    await store.admit(signup('Ada', 'ada@example.com'))
    const open = "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in %'"
    for await (const { email } of await operator.contacts()) {
      assert.equal(email, 'ada@example.com')
      assert.deepEqual(await sql(open), [])
    }
  })

  test('an import waits for a removal that it cannot see yet', async t => {
    const url = await made()
    const removal = await session(t, url)
    // With this a transaction would go on seeing what it saw before it waited.
    await removal.query(
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = 'repeatable read'`,
    )
    await removal.query('begin')
    await removal.query(`select pg_advisory_xact_lock(${ERASURES})`)
    await removal.query('insert into secret (name, value) values ($1, $2)', [ERASURE, 'abc'])
    const hash = erasureHash('abc', 'ada@example.com')
    await removal.query('insert into erased (hash, erased_at) values ($1, now())', [hash])
    const entries = (async function* () {
      yield [{ signup: signup('Ada', 'ada@example.com'), state: 'listed' } as const]
    })()
    const wish = { ...course, announcement: null, dryRun: false, made() {} }
    const importing = postgresOperator(url).importContacts(entries, wish)
    await wait(300)
    await removal.query('commit')
    assert.deepEqual(await importing, { added: 0, existing: 0, erased: 1 })
  })

  test('after pg_restore the erased are taken out again, but not who came back; what waits is in doubt', async t => {
    const url = await made()
    const { operator, sql, place } = deskAt(url)
    const store = await place.open({ provider: 'provider' })
    t.after(() => store.close())
    for (const who of ['ada', 'bob', 'cyd']) await pendingNow(store, `${who}@example.com`)
    // What the dump of the list has, and then the newer tables of the erased beside it.
    await sql('create table dumped as select * from contact')
    for (const who of ['ada', 'bob']) await operator.erase(`${who}@example.com`)
    await sql(
      'insert into contact overriding system value select * from dumped where number not in (select number from contact)',
    )
    await sql("update contact set created_at = now() + interval '1 second' where email = 'bob@example.com'")
    assert.deepEqual(await operator.restore(null), { contacts: 2, erased: 1, doubtful: 1, kept: null })
    assert.deepEqual(
      (await sql('select email from contact order by email')).map(({ email }) => email),
      ['bob@example.com', 'cyd@example.com'],
    )
    assert.deepEqual(await sql('select doubt, token from delivery'), [{ doubt: true, token: null }])
    assert.deepEqual(await operator.restore(null), { contacts: 2, erased: 0, doubtful: 1, kept: null })
    await assert.rejects(
      operator.restore('backup.db'),
      /^OperatorError: .*pg_restore .*"waitlist restore" without a file/,
    )
  })
})

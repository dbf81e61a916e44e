import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { postgres } from '../../src/stores/postgres/client.ts'
import { upgrade } from '../../src/stores/postgres/schema.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { idOf, pendingNow, signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { session } from './postgres.stage.ts'

const server = await sharedPostgres()

const open = (url: string, provider: string | null = null) =>
  postgresStore({ url, eventName: 'waitlist.joined', destinations: ['webhook'], provider, log: recordingLog().log })

/** The next release, which has one migration more; it takes its time. */
function nextRelease(t: Parameters<typeof temporaryFolder>[0], sql: string): URL {
  const folder = temporaryFolder(t)
  const first = '0001.sql'
  copyFileSync(new URL(`../../src/stores/postgres/migrations/${first}`, import.meta.url), join(folder, first))
  writeFileSync(join(folder, '0002.sql'), sql)
  return pathToFileURL(`${folder}/`)
}

/** On a connection of the store's, with its timeouts. */
async function upgraded(url: string, migrations: URL): Promise<void> {
  const database = postgres({ url, log: recordingLog().log })
  try {
    await database.lend(client => upgrade(client, 'the list', migrations))
  } finally {
    await database.close()
  }
}

const WAITING =
  'select 1 from pg_locks join pg_database on oid = database where datname = current_database() and not granted'

const versions = (url: string) => rowsIn(url, 'select version from waitlist_schema')

test('8 stores that open an empty database at once make one schema, and all work', async () => {
  for (const isolation of ['read committed', 'serializable']) {
    const url = await server.database()
    const name = new URL(url).pathname.slice(1)
    await server.run(url, `alter database ${name} set default_transaction_isolation = '${isolation}'`)
    const stores = await Promise.all(Array.from({ length: 8 }, () => open(url)))
    assert.deepEqual(await versions(url), [{ version: 1 }])
    const answers = await Promise.all(
      stores.map((store, i) => store.admit(signup('Visitor', `visitor-${i}@example.com`))),
    )
    assert.equal(new Set(answers.map(idOf)).size, 8)
    assert.equal((await contactsIn(url)).length, 8)
    await Promise.all(stores.map(store => store.close()))
  }
})

test('an upgrade that takes longer than a statement may is waited for by the one that comes second', async t => {
  const url = await server.database()
  const migrations = nextRelease(t, 'select pg_sleep(4); alter table contact add column note text;')
  await Promise.all([upgraded(url, migrations), upgraded(url, migrations)])
  assert.deepEqual(await versions(url), [{ version: 2 }])
})

test('an older program goes on while the next release upgrades, and does not start anew', async t => {
  const url = await server.database()
  const [older, asking] = [await open(url), await open(url, 'provider')]
  t.after(() => Promise.all([older.close(), asking.close()]))
  await older.admit(signup('Ada', 'ada@example.com'))
  const handOver = await pendingNow(asking, 'eve@example.com')
  const migrations = nextRelease(
    t,
    'alter table contact add column note text; alter table delivery add column weight integer not null default 1;' +
      ' create index contact_created on contact (created_at);',
  )
  const meanwhile = Array.from({ length: 300 }, (_, i) => older.admit(signup('Visitor', `visitor-${i}@example.com`)))
  const [answers] = await Promise.all([Promise.all(meanwhile), upgraded(url, migrations)])
  assert.ok(answers.every(({ is }) => is === 'listed now'))
  assert.deepEqual(await versions(url), [{ version: 2 }])

  assert.equal((await older.admit(signup('Ada', 'ada@example.com'))).is, 'already listed')
  assert.equal((await older.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
  assert.equal(await asking.settle(handOver, { is: 'listed', joined: true }), true)
  const deliveries = await older.claim('webhook', 1_000)
  assert.equal(deliveries.length, 303)
  const settled = await Promise.all(deliveries.map(each => older.settle(each, { is: 'delivered' })))
  assert.ok(settled.every(Boolean))

  await assert.rejects(open(url), (error: Error) => {
    assert.ok(error instanceof OperatorError)
    assert.match(error.message, /was written by a newer Waitlist \(its schema has version 2, this program knows 1\)/)
    return true
  })
})

test('an upgrade that has to wait for a table gives up before signups do, and works later', async t => {
  const url = await server.database()
  const store = await open(url)
  t.after(() => store.close())
  const migrations = nextRelease(t, 'alter table contact add column note text;')
  const operator = await session(t, url)
  await operator.query('begin')
  await operator.query('lock table contact in access share mode')
  const refused = assert.rejects(upgraded(url, migrations), { code: '55P03' })
  await until(async () => (await rowsIn(url, WAITING)).length > 0)
  // Its lock waits behind the one that the upgrade asks for.
  const [admission] = await Promise.all([store.admit(signup('Ada', 'ada@example.com')), refused])
  assert.equal(admission.is, 'listed now')
  assert.deepEqual(await versions(url), [{ version: 1 }])
  await operator.query('rollback')
  await upgraded(url, migrations)
  assert.deepEqual(await versions(url), [{ version: 2 }])
})

test('an upgrade that fails leaves everything as it was, and says why', async t => {
  const url = await server.database()
  await open(url).then(store => store.close())
  const migrations = nextRelease(t, 'alter table contact add column note text; alter table nobody add column x int;')
  await assert.rejects(
    upgraded(url, migrations),
    /The schema of the list cannot be made: relation "nobody" does not exist/,
  )
  assert.deepEqual(await versions(url), [{ version: 1 }])
  assert.deepEqual(await rowsIn(url, "select 1 from information_schema.columns where column_name = 'note'"), [])
  await open(url).then(store => store.close())
})

test("another program's tables are left alone", async () => {
  const url = await server.database()
  await server.run(url, 'create table contact (mine text)')
  await assert.rejects(open(url), /The schema of .* cannot be made: relation "contact" already exists/)
})

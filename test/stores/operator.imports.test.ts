import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { ERASURE, erasureHash } from '../../src/stores/operator/erasure.ts'
import { postgresOperator } from '../../src/stores/postgres/engine.ts'
import { ERASURES } from '../../src/stores/postgres/sql.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { importContract } from '../contracts/operator.imports.ts'
import { signup } from '../contracts/store.place.ts'
import { sqlOn as sqlInFile } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { sqlOn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'

const eventName = 'waitlist.joined'

importContract(
  'a SQLite file',
  async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const store = await sqliteStore({ path, eventName })
    t.after(() => store.close())
    return { store, operator: sqliteOperator(path), sql: sqlInFile(path) }
  },
  async t => sqliteOperator(join(temporaryFolder(t), 'none.db')),
  true,
  String,
)

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

importContract(
  'PostgreSQL',
  async t => {
    const url = await server.database()
    const store = await postgresStore({ url, log: recordingLog().log, eventName })
    t.after(() => store.close())
    return { store, operator: postgresOperator(url), sql: sqlOn(url) }
  },
  async () => postgresOperator(await server.database()),
  false,
  milliseconds => `to_timestamp(${milliseconds / 1000})`,
)

test('on PostgreSQL, an import waits for a removal that it cannot see yet', { timeout: 60_000 }, async t => {
  const url = await server.database()
  await (await postgresStore({ url, log: recordingLog().log, eventName })).close()
  const removal = new pg.Client(url)
  await removal.connect()
  t.after(() => removal.end())
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
  const { signal } = new AbortController()
  const wish = { announcement: null, keepsMailboxes: false, dryRun: false, progress() {}, made() {}, signal }
  const importing = postgresOperator(url).importContacts(entries, wish)
  await wait(300)
  await removal.query('commit')
  assert.deepEqual(await importing, { added: 0, existing: 0, erased: 1 })
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { postgresOperator } from '../../src/stores/postgres/engine.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { type Desk, erasureContract } from '../contracts/operator.erasure.ts'
import { holdingContract } from '../contracts/operator.holding.ts'
import { pruningContract } from '../contracts/operator.pruning.ts'
import { opened, pendingNow, signup } from '../contracts/store.place.ts'
import { sqlOn as sqlInFile } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { sqlOn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'

const eventName = 'waitlist.joined'
const probe = { impossible: 'not needed' }

async function inFile(t: TestContext): Promise<Desk & { readonly path: string }> {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const open: Desk['place']['open'] = options => sqliteStore({ path, eventName, minimumFree: 0, ...options })
  return { path, place: { open, probe }, operator: sqliteOperator(path), sql: sqlInFile(path) }
}

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())
const { log } = recordingLog()

async function onServer(): Promise<Desk> {
  const url = await server.database()
  const open: Desk['place']['open'] = options => postgresStore({ url, eventName, log, ...options })
  return { place: { open, probe }, operator: postgresOperator(url), sql: sqlOn(url) }
}

erasureContract('a SQLite file', inFile, '0')
erasureContract('PostgreSQL', onServer, 'to_timestamp(0)')
holdingContract('a SQLite file', inFile, String)
holdingContract('PostgreSQL', onServer, time => `to_timestamp(${time} / 1000.0)`)
pruningContract('a SQLite file', inFile)
pruningContract('PostgreSQL', onServer)

describe('erasing people from a SQLite file alone', { timeout: 60_000 }, () => {
  test('while the service runs, name and address leave the file and its log', async t => {
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

describe('after pg_restore', { timeout: 60_000 }, () => {
  test('the erased are taken out again, but not who came back; what waits is in doubt, and held by nobody', async t => {
    const { place, operator, sql } = await onServer()
    const store = await opened(place, t, { provider: 'provider' })
    for (const who of ['ada', 'bob', 'cyd']) await pendingNow(store, `${who}@example.com`)
    // What the dump of the list has, and then the newer tables of the erased beside it.
    await sql('create table dumped as select * from contact')
    for (const who of ['ada', 'bob']) await operator.erase(`${who}@example.com`)
    const back =
      'insert into contact overriding system value select * from dumped where number not in (select number from contact)'
    await sql(back)
    await sql("update contact set created_at = now() + interval '1 second' where email = 'bob@example.com'")
    assert.deepEqual(await operator.restore(null), { contacts: 2, erased: 1, doubtful: 1, kept: null })
    assert.deepEqual(
      (await sql('select email from contact order by email')).map(({ email }) => email),
      ['bob@example.com', 'cyd@example.com'],
    )
    assert.deepEqual(await sql('select doubt, token from delivery'), [{ doubt: true, token: null }])
    assert.deepEqual(await operator.restore(null), { contacts: 2, erased: 0, doubtful: 1, kept: null })
  })

  test('a file is refused, with what to do', async () => {
    const { operator } = await onServer()
    await assert.rejects(operator.restore('backup.db'), (error: Error) => {
      assert.ok(error instanceof OperatorError)
      assert.match(error.message, /pg_restore .*"waitlist restore" without a file/)
      return true
    })
  })
})

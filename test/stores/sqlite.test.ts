import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { contactsIn, sqlOn } from '../harness/database.ts'
import { quickFolder } from '../waitlist/scene.ts'
import { openStore } from './sqlite.stage.ts'

storeContract('SQLite in a file', async t => {
  const path = join(quickFolder(t), 'waitlist.db')
  return {
    open: options => sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0, ...options }),
    probe: async () => contactsIn(path),
    sql: sqlOn(path),
    async hold() {
      const other = new DatabaseSync(path)
      other.exec('begin immediate')
      return async () => other.close()
    },
  }
})

test('a time that no program can read is refused when it is written by hand, and ends no process', async t => {
  const { store, path } = await openStore(t, { destinations: ['webhook'] })
  await store.admit(signup('Ada', 'ada@example.com'))
  const nanoseconds = '1763000000000000000'
  for (const column of ['created_at', 'event_at']) {
    await assert.rejects(sqlOn(path)(`update contact set ${column} = ${nanoseconds}`), /check/i)
  }
  assert.equal((await store.claim('webhook', 1)).length, 1)
})

test('in a shell without foreign keys a deleted contact takes its deliveries along', async t => {
  const { store, path } = await openStore(t, { destinations: ['webhook'] })
  for (const who of ['ada', 'eve']) await store.admit(signup(who, `${who}@example.com`))
  const sql = sqlOn(path)
  await sql("delete from contact where email = 'eve@example.com'", 'unchecked')
  assert.deepEqual(await sql('select contact from delivery'), await sql('select number as contact from contact'))
})

test('a trigger that was made by hand refuses signups with their proofs, is told, and ends no process', async t => {
  const { store, path } = await openStore(t, { holds: { above: null, window: 1, suspicious: false } })
  const sql = sqlOn(path)
  await sql("create trigger no after insert on contact begin select raise(abort, 'nobody joins today'); end")
  const proof = { nonce: 'one', expires: new Date(Date.now() + 600_000) }
  await assert.rejects(store.admit({ ...signup('Ada', 'ada@example.com'), proof }), /nobody joins today/)
  await assert.rejects(store.check(), StoreUnavailable)
  await sql('drop trigger no')
  assert.equal((await store.admit({ ...signup('Eve', 'eve@example.com'), proof })).is, 'listed now', 'it was not spent')
})

test('a counter that was set by hand to its end refuses signups, is told, and ends no process', async t => {
  const { store, path } = await openStore(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  const sql = sqlOn(path)
  for (const number of [2n ** 53n, 2n ** 63n - 1n]) {
    await sql(`update sqlite_sequence set seq = ${number} where name = 'contact'`)
    await assert.rejects(store.admit(signup('Eve', 'eve@example.com')), StoreUnavailable)
  }
  await sql("update sqlite_sequence set seq = 1 where name = 'contact'")
  assert.equal((await store.admit(signup('Eve', 'eve@example.com'))).is, 'listed now')
})

test('a store that is closed while it counts leaves no log behind', async t => {
  const { store, path } = await openStore(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  const [count, counts] = [store.countListed(), store.counts()]
  await store.close()
  assert.equal(await count, 1)
  assert.equal((await counts).contacts.listed, 1)
  assert.equal(existsSync(`${path}-wal`), false)
})

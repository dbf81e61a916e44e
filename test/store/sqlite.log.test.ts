import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { OperatorError } from '../../src/config/operator.ts'
import { erase } from '../../src/erase/store.ts'
import { contactsIn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { onSqlite, signup } from './place.ts'

async function opened(t: TestContext) {
  const place = await onSqlite(t)
  const store = await place.open({ destinations: ['webhook'] })
  const { path } = place.location as { path: string }
  let visitors = 0
  const crowd = (size: number) =>
    Promise.all(Array.from({ length: size }, () => store.admit(signup('V'.repeat(100), `v-${++visitors}@example.com`))))
  return { place, store, path, crowd, visitors: () => visitors }
}

/** In the header of a log: another one each time the log is begun anew. */
function saltOf(path: string): string {
  const log = openSync(`${path}-wal`, 'r')
  const header = Buffer.alloc(24)
  readSync(log, header, 0, 24, 0)
  closeSync(log)
  return header.toString('hex', 16)
}

function readerOf(t: TestContext, path: string): DatabaseSync {
  const reader = new DatabaseSync(path, { readOnly: true })
  t.after(() => reader.isOpen && reader.close())
  reader.exec('begin')
  reader.prepare('select count(*) from contact').get()
  return reader
}

/** Some seconds of work for a reader. */
const LONG =
  'with recursive n (i) as (select 1 union all select i + 1 from n where i < 3000000) select count(*) as n from n'

/** Bytes: the pages from which signups wait, and what one look may miss. */
const MOST = 9_000 * 4_120

describe('the log of a SQLite file', () => {
  test('begins anew again and again while there are commits, stays short, and is gone after a close', async t => {
    const { store, path, crowd, visitors } = await opened(t)
    const salts = new Set<string>()
    while (salts.size < 4) {
      await crowd(256)
      salts.add(saltOf(path))
      assert.ok(statSync(`${path}-wal`).size < MOST)
    }
    await store.close()
    assert.equal(existsSync(`${path}-wal`), false)
    assert.equal(contactsIn(path).length, visitors())
  })

  test('grows while somebody reads it, and nobody waits for them; then it begins anew', async t => {
    const { path, crowd } = await opened(t)
    await crowd(1)
    const reader = readerOf(t, path)
    const before = saltOf(path)
    while (statSync(`${path}-wal`).size < MOST) {
      await crowd(512)
    }
    assert.equal(saltOf(path), before)
    reader.close()
    await until(async () => {
      await crowd(64)
      return saltOf(path) !== before
    })
  })

  test('signups and those who leave do not wait for a read of the service', async t => {
    const { store, crowd } = await opened(t)
    await crowd(10)
    let isRead = false
    const read = store.read(async tx => {
      await tx.all(LONG)
      isRead = true
    })
    for (let i = 0; i < 20; i++) await crowd(10)
    await store.transaction(tx => erase(tx, 'v-1@example.com'))
    await store.truncateWal()
    assert.equal(isRead, false)
    await read
  })
})

test('a read of the service sees one moment, and changes nothing', async t => {
  const { store, crowd } = await opened(t)
  await crowd(3)
  const counts = await store.read(async tx => {
    const count = async () => (await tx.all<{ n: number }>('select count(*) as n from contact'))[0]!.n
    const first = await count()
    await crowd(3)
    return [first, await count()]
  })
  assert.deepEqual(counts, [3, 3])
  await assert.rejects(
    store.read(tx => tx.run('delete from contact')),
    /only reads/,
  )
  await assert.rejects(store.read(tx => tx.all('select nothing')))
  assert.equal((await store.counts()).contacts.listed, 6)
})

describe('who was erased', () => {
  /** By another process: closing a file frees all locks that its own process has on it. */
  const isIn = (path: string, text: string) =>
    ['', '-wal'].some(ending => execFileSync('cat', [path + ending], { encoding: 'latin1' }).includes(text))

  test('is nowhere in the file and its log, as soon as nobody reads and there are commits', async t => {
    const { store, path, crowd } = await opened(t)
    await crowd(100)
    const leave = async (email: string) => {
      await store.transaction(tx => erase(tx, email))
      await store.truncateWal()
    }
    await leave('v-7@example.com')
    assert.equal(isIn(path, 'v-7@'), false)
    const reader = readerOf(t, path)
    await Promise.all(['v-8@example.com', 'v-9@example.com'].map(leave))
    reader.close()
    await until(async () => {
      await store.check()
      await store.claim('webhook', 1)
      return !isIn(path, 'v-8@') && !isIn(path, 'v-9@')
    })
    assert.ok(isIn(path, 'v-10@'))
  })

  test('by a command while somebody reads is still in the log, and it says so', async t => {
    const { place, path, crowd } = await opened(t)
    await crowd(3)
    const reader = readerOf(t, path)
    await assert.rejects(place.operator.erase('v-1@example.com'), (error: Error) => {
      assert.ok(error instanceof OperatorError)
      assert.match(error.message, /^It is erased, but still in .*waitlist\.db-wal/)
      return true
    })
    reader.close()
    await place.operator.erase('v-2@example.com')
    assert.equal(isIn(path, 'v-1@') || isIn(path, 'v-2@'), false)
    assert.equal(contactsIn(path).length, 1)
  })
})

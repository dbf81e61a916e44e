import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import type { Store } from '../../src/waitlist/ports/store.ts'
import { signup } from '../contracts/store.place.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'

const MB = 1024 * 1024
const SIZE = 160 * MB

/** A disk of this test's own; null where no file system can be mounted. */
function smallDisk(t: TestContext): string | null {
  let unmount = () => {}
  t.after(() => unmount())
  const folder = temporaryFolder(t)
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', folder]).status !== 0) return null
  // At once, though a store still has files there: it is closed by a later hook.
  unmount = () => void spawnSync('umount', ['--lazy', folder])
  return folder
}

/** Signs up crowds until one is refused; resolves with those who were not. */
async function fill(store: Store): Promise<string[]> {
  const acknowledged: string[] = []
  for (let crowd = 0; ; crowd++) {
    const emails = Array.from({ length: 256 }, (_, i) => `${crowd}-${i}@${'long.'.repeat(30)}example`)
    const answers = await Promise.allSettled(emails.map(email => store.admit(signup('V'.repeat(100), email))))
    acknowledged.push(...emails.filter((_, i) => answers[i]!.status === 'fulfilled'))
    const refused = answers.find(({ status }) => status === 'rejected')
    if (refused === undefined) continue
    assert.ok((refused as PromiseRejectedResult).reason instanceof StoreUnavailable)
    return acknowledged
  }
}

test('signups are taken until little is free, however long a reader keeps the log, and again once it is gone', {
  timeout: 60_000,
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const folder = smallDisk(t)
  if (folder === null) return t.skip('no file system can be mounted here')
  const path = join(folder, 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 64 * MB })
  t.after(() => store.close())
  await store.admit(signup('Ada', 'ada@example.com'))
  const reader = new DatabaseSync(path)
  reader.exec('begin; select * from contact')
  const acknowledged = await fill(store)
  await assert.rejects(store.check(), StoreUnavailable)
  assert.ok(statSync(`${path}-wal`).size > 16 * MB)
  reader.close() // ends its transaction
  await until(() =>
    store.check().then(
      () => true,
      () => false,
    ),
  )
  assert.equal((await store.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
  assert.deepEqual(
    contactsIn(path).map(({ email }) => email),
    ['ada@example.com', ...acknowledged, 'bob@example.com'],
  )
})

test('while too little is free, the log is given back as soon as nobody reads it', { timeout: 60_000 }, async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const settings = { path, eventName: 'waitlist.joined', minimumFree: Number.MAX_SAFE_INTEGER }
  await (await sqliteStore({ ...settings, minimumFree: 0 })).close()
  const store = await sqliteStore(settings)
  t.after(() => store.close())
  const reader = new DatabaseSync(path)
  reader.exec('begin; select * from contact')
  const other = new DatabaseSync(path)
  other.exec('create table bulk (content blob); insert into bulk values (zeroblob(1000000))')
  other.close()
  const size = () => statSync(`${path}-wal`).size
  const refused = () => assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
  await refused()
  assert.ok(size() > 1_000_000)
  reader.close()
  await until(async () => {
    await refused()
    return size() === 0
  })
})

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { writeAheadLog } from '../../src/stores/sqlite/log.ts'
import { openSqliteFile } from '../../src/stores/sqlite/schema.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { hasFailed, openStore } from './sqlite.stage.ts'

/** Makes the log so long, through a connection of its own, that the next commit has it shortened. */
function lengthen(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 5_000 })
  database.exec('pragma wal_autocheckpoint = 0; create table bulk (content blob)')
  for (let i = 0; i < 5; i++) {
    database.exec('begin; delete from bulk')
    database.exec(
      'insert into bulk with recursive n (i) as (select 1 union all select i + 1 from n where i < 500) select zeroblob(16000) from n',
    )
    database.exec('commit')
  }
  return database
}

const roomy = { isFull: () => false }
const silent = { info() {}, warn() {} }

describe('the write-ahead log, longer than it may be', { concurrency: true }, () => {
  test('does not make a close a failure, and is gone after it', async t => {
    const { store, path } = await openStore(t)
    const size = () => statSync(path).size
    const before = size()
    let count = 0
    // Until the thread that shortens it has begun.
    while (size() === before) {
      const several = Array.from({ length: 256 }, () =>
        signup('V'.repeat(100), `${++count}@${'long.'.repeat(40)}example`),
      )
      await Promise.all(several.map(store.admit))
    }
    await store.close()
    assert.equal(await hasFailed(store), false)
    assert.equal(existsSync(`${path}-wal`), false)
    assert.equal(contactsIn(path).length, count)
  })

  test('is not kept by an export whose reader has stopped half-way', async t => {
    const { store, path } = await openStore(t)
    const emails = Array.from({ length: 1_200 }, (_, i) => `visitor-${i}@example.com`)
    for (const email of emails) void store.admit(signup('Visitor', email))
    await store.admit(signup('Last', 'last@example.com'))
    const contacts = await sqliteOperator(path).contacts()
    const read: string[] = []
    for await (const { email } of contacts) {
      if (read.push(email) % 400 !== 0) continue
      await store.admit(signup('Later', `later-${read.length}@example.com`))
      const { busy } = withDatabase(path, database => database.prepare('pragma wal_checkpoint(truncate)').get()!)
      assert.equal(busy, 0)
      assert.equal(statSync(`${path}-wal`).size, 0)
    }
    assert.deepEqual(read, [...emails, 'last@example.com'])
  })

  test('is left alone when the database was moved away: what was acknowledged comes back with it', async t => {
    const { store, path } = await openStore(t)
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    const database = lengthen(path)
    t.after(() => database.close())
    const descriptor = openSync(path, 'r+')
    t.after(() => closeSync(descriptor))
    const log = writeAheadLog({ database, path, descriptor }, roomy, silent)
    renameSync(path, `${path}.elsewhere`)
    log.shorten()
    await log.close()
    assert.equal(existsSync(path), false)
    renameSync(`${path}.elsewhere`, path)
    const rows = withDatabase(path, other => other.prepare('select count(*) as n from bulk').get()?.n)
    assert.equal(rows, 500)
  })
})

test('who has left by a link is nowhere in the file and its log, as soon as nobody reads and there are commits', async t => {
  const { store, path } = await openStore(t, { destinations: ['mail'] })
  const people = Array.from({ length: 300 }, (_, i) => signup('Person', `person-${i}@${'long.'.repeat(30)}example.com`))
  await Promise.all(people.map(store.admit))
  const there = () => {
    const bytes = ['', '-wal'].map(ending => readFileSync(path + ending, 'latin1')).join('')
    return people.map(({ email }) => bytes.includes(email))
  }
  const reader = new DatabaseSync(path, { readOnly: true })
  t.after(() => reader.close())
  reader.exec('begin; select count(*) from contact')
  for (const [i, { email }] of people.entries()) {
    if (i % 2 === 0) assert.equal(await store.leave(email), true)
  }
  reader.exec('rollback')
  const expected = people.map((_, i) => i % 2 === 1)
  await until(async () => {
    await store.claim('mail', 1)
    return isDeepStrictEqual(there(), expected)
  })
})

const LONGEST = 50

/** A database with a log that may have 50 pages, and what writes to it. */
function opened(t: TestContext) {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const file = openSqliteFile({ path })
  const { database, close } = file
  const told: { readonly text: string; readonly readBy?: readonly string[] }[] = []
  const tell = (details: object, text: string) => void told.push({ ...details, text })
  const log = writeAheadLog(file, roomy, { info: tell, warn: tell }, LONGEST)
  t.after(async () => {
    await log.close()
    close()
  })
  database.exec('create table page (content text)')
  const insert = database.prepare('insert into page values (?)')
  const look = database.prepare('pragma wal_checkpoint(noop)')
  return {
    path,
    told,
    release: log.release,
    pages: () => (look.get() as { log: number }).log,
    /** One commit of some pages, and a moment for what happens beside it. */
    async commit() {
      insert.run('x'.repeat(20_000))
      log.shorten()
      await turn()
    },
  }
}

test('the log begins anew again and again while there are commits', async t => {
  const { commit, pages } = opened(t)
  let before = 0
  for (let times = 0; times < 3; ) {
    await commit()
    const now = pages()
    if (now < before) times++
    before = now
  }
})

/** Another process that reads a database until it is told to end. */
async function readerOf(t: TestContext, path: string): Promise<ChildProcess> {
  const code =
    'const database = new (require("node:sqlite").DatabaseSync)(process.argv[1]);' +
    'database.exec("begin; select * from page"); console.log("reading"); process.stdin.resume()'
  const reader = spawn(process.execPath, ['-e', code, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => reader.kill('SIGKILL'))
  await once(reader.stdout, 'data')
  return reader
}

test('a log that grows while somebody reads is told of once, with who reads, and so is its end', async t => {
  const { path, told, commit } = opened(t)
  await commit()
  const reader = await readerOf(t, path)
  for (let i = 0; i < 100; i++) await commit()
  const [{ text, readBy }, ...more] = told as [(typeof told)[0]]
  assert.match(text, /log is long: while somebody reads/)
  assert.deepEqual(more, [])
  if (process.platform === 'linux') {
    assert.equal(readBy?.length, 1)
    assert.match(readBy[0]!, new RegExp(`^\\S+ \\(pid ${reader.pid}\\)$`))
  }
  reader.stdin!.end()
  await once(reader, 'exit')
  while (told.length < 2) await commit()
  assert.match(told[1]!.text, /log is short again/)
})

test('the space of the log is released as soon as nobody reads, and nobody is waited for', async t => {
  const { path, commit, release } = opened(t)
  const size = () => statSync(`${path}-wal`).size
  await commit()
  const reader = await readerOf(t, path)
  for (const commits of [1, 100]) {
    for (let i = 0; i < commits; i++) await commit()
    const [grown, began] = [size(), performance.now()]
    assert.equal(release(), false)
    assert.ok(performance.now() - began < 4_000, 'a write waits for another process for 5 s')
    assert.equal(size(), grown)
    await wait(1_000) // the next attempt is a second later
  }
  reader.stdin!.end()
  await once(reader, 'exit')
  while (!release()) await wait(50)
  assert.equal(size(), 0)
})

test('while too little is free, the log is given back as soon as nobody reads it', async t => {
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

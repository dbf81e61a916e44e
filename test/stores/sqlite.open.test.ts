import assert from 'node:assert/strict'
import { readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { applySettings, openSqliteFile } from '../../src/stores/sqlite/schema.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { signup } from '../contracts/store.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runProgram, spawnProgram } from '../harness/program.ts'
import { openStore } from './sqlite.stage.ts'

const newFile = (t: TestContext) => join(temporaryFolder(t), 'waitlist.db')

const pragma = (database: DatabaseSync, name: string) =>
  Object.values(database.prepare(`pragma ${name}`).get() as Record<string, unknown>)[0]

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OperatorError, String(error))
  assert.match(error.message, sentence)
  return true
}

describe('opening a SQLite file', { concurrency: true, timeout: 60_000 }, () => {
  test('the connection that writes has every setting of the design, read from that connection itself', t => {
    const file = openSqliteFile({ path: newFile(t) })
    t.after(() => file.close())
    const inForce = Object.fromEntries(
      ['journal_mode', 'synchronous', 'busy_timeout', 'foreign_keys', 'trusted_schema', 'mmap_size']
        .concat(['wal_autocheckpoint', 'journal_size_limit'])
        .map(name => [name, pragma(file.database, name)]),
    )
    assert.deepEqual(inForce, {
      journal_mode: 'wal',
      synchronous: 2,
      busy_timeout: 5_000,
      foreign_keys: 1,
      trusted_schema: 0,
      mmap_size: 0,
      wal_autocheckpoint: 0,
      journal_size_limit: 67_108_864,
    })
  })

  test('the file that a running store writes is in WAL mode and all its tables are STRICT', async t => {
    const path = newFile(t)
    await openStore(t, { path })
    withDatabase(path, database => {
      assert.equal(pragma(database, 'journal_mode'), 'wal')
      const tables = database.prepare("select name, strict from pragma_table_list where schema = 'main'").all()
      const ours = tables.filter(({ name }) => !String(name).startsWith('sqlite_'))
      assert.ok(ours.length >= 2)
      assert.ok(ours.every(({ strict }) => strict === 1))
    })
  })

  test('a setting that SQLite does not take keeps the store from starting', t => {
    // A database in memory cannot have a log: SQLite answers the wish for one with another mode and no error.
    const database = new DatabaseSync(':memory:')
    t.after(() => database.close())
    assert.throws(
      () => applySettings(database, false),
      refused(/^SQLite did not accept the setting journal_mode = WAL \(it reads memory\)\.$/),
    )
  })

  test('two names of one file are one file: it has one lock, and its log is watched where it is', async t => {
    const path = newFile(t)
    const { store: first } = await openStore(t, { path })
    const link = join(temporaryFolder(t), 'link.db')
    symlinkSync(path, link)
    await assert.rejects(openStore(t, { path: link }), refused(/is in use by another Waitlist process/))
    await first.close()
    const { store: second } = await openStore(t, { path: link })
    assert.equal((await second.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    unlinkSync(`${path}-wal`)
    await wait(260) // the files are looked at every 250 ms
    await assert.rejects(second.admit(signup('Bob', 'bob@example.com')), /moved or deleted/)
  })

  test('a folder that it creates is for this user alone', async t => {
    const path = join(temporaryFolder(t), 'data', 'waitlist.db')
    await openStore(t, { path })
    assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  })

  test('from nothing: the folders, the file, its mark and the newest schema are made', async t => {
    const path = join(temporaryFolder(t), 'a', 'b', 'waitlist.db')
    const { store } = await openStore(t, { path })
    await store.admit(signup('Ada', 'ada@example.com'))
    withDatabase(path, database => {
      assert.equal(pragma(database, 'application_id'), 0x77616974)
      assert.ok((pragma(database, 'user_version') as number) >= 1)
      assert.equal(pragma(database, 'integrity_check'), 'ok')
    })
  })

  test('a database of another program is refused, and not touched', async t => {
    const path = newFile(t)
    withDatabase(path, database => database.exec('create table invoice (number integer primary key)'))
    const before = readFileSync(path)
    await assert.rejects(openStore(t, { path }), refused(/is a database of another program/))
    assert.ok(readFileSync(path).equals(before))
  })

  test('a file that is no database is refused, and not touched', async t => {
    const path = newFile(t)
    writeFileSync(path, 'name,email\n'.repeat(1_000))
    await assert.rejects(openStore(t, { path }), refused(/cannot be opened: .*not a database/))
    assert.equal(readFileSync(path, 'utf8'), 'name,email\n'.repeat(1_000))
  })

  test('a folder that cannot be made is named', async t => {
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'data'), '')
    await assert.rejects(
      openStore(t, { path: join(folder, 'data', 'waitlist.db') }),
      refused(/data.* cannot be opened/),
    )
  })

  test('a second process on the same file is refused in words; the first goes on', async t => {
    const cwd = temporaryFolder(t)
    const env = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0' }
    const first = await runProgram(t, env, { cwd })
    const second = spawnProgram(t, env, { cwd })
    assert.equal(await second.exited, 1)
    assert.match(second.stderr(), /waitlist\.db is in use by another Waitlist process\. Stop that one first/)
    assert.doesNotMatch(second.stderr(), /\n\s+at /, 'no stack')
    assert.equal((await fetch(`${first.baseUrl}/api/health`)).status, 200)

    // However the first one ends, its file is free again.
    assert.equal(await first.end('SIGKILL'), null)
    await runProgram(t, env, { cwd })
  })

  test('the export reads beside a running store, and after it', async t => {
    const path = newFile(t)
    const { store } = await openStore(t, { path })
    await store.admit(signup('Ada', 'Ada@example.com'))
    const { contacts } = sqliteOperator(path)
    const reading = (await contacts())[Symbol.asyncIterator]()
    const { value } = await reading.next()
    assert.equal(value.email, 'Ada@example.com')
    assert.ok(value.createdAt instanceof Date)
    // Half read: the store writes on, and what is being read stays as it was.
    assert.equal((await store.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
    assert.equal((await reading.next()).done, true)
    assert.equal((await Array.fromAsync(await contacts())).length, 2)
    await store.close()
    assert.equal((await Array.fromAsync(await contacts())).length, 2)
    assert.equal(contactsIn(path).length, 2)
  })
})

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { applySettings, openSqliteFile } from '../../src/stores/sqlite/schema.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { signup } from '../contracts/store.ts'
import { withDatabase } from '../harness/database.ts'
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

describe('opening a SQLite file', { concurrency: true }, () => {
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

  test('from nothing: folders for this user alone, the mark, and the newest schema, whose tables are STRICT', async t => {
    const path = join(temporaryFolder(t), 'a', 'b', 'waitlist.db')
    await openStore(t, { path })
    assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
    withDatabase(path, database => {
      assert.equal(pragma(database, 'journal_mode'), 'wal')
      assert.equal(pragma(database, 'application_id'), 0x77616974)
      assert.ok((pragma(database, 'user_version') as number) >= 1)
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
})

describe('a file of another version', () => {
  test('of a newer program is refused with what to do, and not touched', async t => {
    const path = newFile(t)
    await (await openStore(t, { path })).store.close()
    withDatabase(path, database => database.exec('pragma user_version = 2; pragma journal_mode = delete'))
    const sentence = /was written by a newer Waitlist \(its schema has version 2, this program knows 1\)/
    const before = readFileSync(path)
    await assert.rejects(openStore(t, { path }), refused(sentence))
    const { contacts, backlog, look, deliveries, delivery, replay, backUp } = sqliteOperator(path)
    const copy = join(dirname(path), 'copy.db')
    const asked = [contacts, backlog, look, () => deliveries({ limit: 1 }), () => delivery(1), () => backUp(copy)]
    for (const ask of [...asked, () => replay({ abandoned: true }), () => replay({ numbers: [1] })]) {
      await assert.rejects(ask, refused(sentence))
    }
    assert.ok(readFileSync(path).equals(before), 'it is not touched')
    assert.equal(existsSync(copy), false)
    assert.deepEqual(
      readdirSync(dirname(path)).filter(name => name.endsWith('-wal')),
      [],
    )
  })

  test('is left as it was when its tables cannot all be made', async t => {
    // The last statement of the first migration fails: there is an index of this name.
    const path = newFile(t)
    withDatabase(path, database => {
      database.exec(`pragma application_id = ${0x77616974}; create table other (number integer)`)
      database.exec('create index delivery_abandoned on other (number)')
    })
    const schema = () => withDatabase(path, database => database.prepare('select sql from sqlite_schema').all())
    const before = schema()
    await assert.rejects(openStore(t, { path }), /delivery_abandoned/)
    assert.deepEqual(schema(), before)
    assert.equal(withDatabase(path, database => database.prepare('pragma user_version').get())?.user_version, 0)
  })
})

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'

const MARK = 0x77616974

/** The tables of the last version before the first release, as far as they tell it from this one. */
const development = [
  'create table contact (number integer primary key, id text not null, email_key text not null unique, state text) strict',
  'create table event (contact integer primary key references contact (number), name text, created_at integer) strict',
  'create table registration (contact integer primary key references contact (number), provider text, due_at integer) strict',
  'create table delivery (number integer primary key, contact integer references event (contact)) strict',
  "insert into contact values (1, 'x', 'ada@example.com', 'listed')",
  "insert into event values (1, 'waitlist.joined', 1767225600000)",
].join(';')

function made(t: TestContext, sql: string, version: number): string {
  const path = join(temporaryFolder(t), 'waitlist.db')
  withDatabase(path, database =>
    database.exec(`begin; ${sql}; pragma application_id = ${MARK}; pragma user_version = ${version}; commit`),
  )
  return path
}

const open = (path: string) => sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OperatorError, String(error))
  assert.match(error.message, sentence)
  return true
}

async function refusesAll(path: string, sentence: RegExp): Promise<void> {
  const before = readFileSync(path)
  await assert.rejects(open(path), refused(sentence))
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
}

describe('a file of another version', { timeout: 60_000 }, () => {
  for (const version of [1, 2]) {
    test(`of a development version (${version}) is refused with what to do, and not touched`, async t => {
      const path = made(t, development, version)
      await refusesAll(
        path,
        /waitlist\.db was made by a development version of Waitlist, .*waiting events do not cross.*export.*start.*import/,
      )
    })
  }

  test('of a development version that had not all of these tables is refused too', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    await (await open(path)).close()
    withDatabase(path, database => database.exec('drop table arrival; pragma journal_mode = delete'))
    await refusesAll(path, /was made by a development version of Waitlist/)
  })

  test('of a newer program is refused with what to do, and not touched', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    await (await open(path)).close()
    withDatabase(path, database => database.exec('pragma user_version = 2; pragma journal_mode = delete'))
    await refusesAll(path, /was written by a newer Waitlist \(its schema has version 2, this program knows 1\)/)
  })

  test('is left as it was when its tables cannot all be made', async t => {
    // The last statement of the first migration fails: there is an index of this name.
    const path = made(t, 'create table other (number integer); create index delivery_abandoned on other (number)', 0)
    const schema = () => withDatabase(path, database => database.prepare('select sql from sqlite_schema').all())
    const before = schema()
    await assert.rejects(open(path), /delivery_abandoned/)
    assert.deepEqual(schema(), before)
    assert.equal(withDatabase(path, database => database.prepare('pragma user_version').get())?.user_version, 0)
  })
})

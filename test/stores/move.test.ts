import assert from 'node:assert/strict'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import type { Moved } from '../../src/stores/move.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { CannotOpen } from '../../src/waitlist/ports.ts'
import { signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres } from '../harness/postgres.ts'
import { recordingLog } from '../harness/service.ts'
import {
  contactRow,
  listIn,
  listOn,
  manyContacts,
  moved,
  movedWhile,
  postgres,
  sqlite,
  writeList,
} from './move.scene.ts'

const server = await startPostgres()
after(() => server.remove())

/** A file with so many contacts, and an empty database. */
async function scene(t: TestContext, contacts = 30) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'waitlist.db')
  writeList(path, manyContacts(contacts))
  const url = await server.database()
  return { folder, path, url, from: sqlite(path), to: postgres(url) }
}

const copiedBy = (result: Moved) => ('copied' in result ? result.copied : result.is)

const cannot = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CannotOpen, String(error))
  assert.match(error.message, sentence)
  return true
}

describe('a move that is repeated', { timeout: 120_000 }, () => {
  test('copies nothing twice, and says that all is there', async t => {
    const { from, to } = await scene(t)
    assert.equal(copiedBy(await moved(from, to)), 90)
    assert.equal(copiedBy(await moved(from, to)), 0)
  })

  test('goes on where the signal ended it, wherever that was', async t => {
    const { from, to, url, path } = await scene(t)
    for (const rows of [0, 5, 20, 35, 60, 85]) {
      const leaving = new AbortController()
      const result = await moved(from, to, {
        ...{ batch: 5, signal: leaving.signal },
        progress: ({ phase, done }) => phase === 'copying' && done >= rows && leaving.abort(),
      })
      assert.equal(result.is, 'stopped')
    }
    assert.equal((await moved(from, to, { batch: 4 })).is, 'moved')
    assert.deepEqual(await listOn(url), listIn(path))
  })

  test('copies what joined between two moves', async t => {
    const { from, to, path, url } = await scene(t)
    assert.equal((await moved(from, to)).is, 'moved')
    writeList(path, { contact: [contactRow(31)], event: [{ contact: 31, name: 'waitlist.joined', created_at: 1 }] })
    assert.equal(copiedBy(await moved(from, to)), 2)
    assert.deepEqual(await listOn(url), listIn(path))
  })
})

describe('a target that does not match is refused, and nothing is written', { timeout: 120_000 }, () => {
  const spoilt: readonly (readonly [what: string, sql: string, table: string, key: number])[] = [
    ['another name', "update contact set name = 'Eve' where number = 3", 'contact', 3],
    ['another time', "update event set created_at = created_at + interval '1 ms' where contact = 4", 'event', 4],
    ['another state', "update delivery set state = 'delivered' where number = 5", 'delivery', 5],
    ['a lease', 'update delivery set token = gen_random_uuid() where number = 6', 'delivery', 6],
    [
      'a row more',
      "insert into contact overriding system value values (99, gen_random_uuid(), 'Eve', 'x', 'x', 'listed', now())",
      'contact',
      99,
    ],
  ]
  for (const [what, sql, table, key] of spoilt) {
    test(what, async t => {
      const { from, to, url, path } = await scene(t, 10)
      assert.equal((await moved(from, to)).is, 'moved')
      await server.run(url, 'alter table event drop constraint event_contact_fkey', sql)
      writeList(path, { contact: [contactRow(11), contactRow(12)] })
      const before = await listOn(url)
      assert.deepEqual(await moved(from, to, { batch: 3 }), { is: 'refused', table, key })
      assert.deepEqual(await listOn(url), before)
    })
  }

  test('a row that the source does not have, and one that it has no longer', async t => {
    const { from, to, url, path } = await scene(t, 10)
    assert.equal((await moved(from, to)).is, 'moved')
    withDatabase(path, database => database.exec('delete from delivery where number = 4'))
    assert.deepEqual(await moved(from, to), { is: 'refused', table: 'delivery', key: 4 })
    const store = await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    assert.deepEqual(await moved(from, to), { is: 'refused', table: 'contact', key: 11 })
  })

  test('in a file, too', async t => {
    const { folder, from, path } = await scene(t, 10)
    const to = sqlite(join(folder, 'copy.db'))
    assert.equal((await moved(from, to)).is, 'moved')
    withDatabase(to.kind === 'sqlite' ? to.path : '', database => database.exec("update contact set name = 'Eve'"))
    writeList(path, { contact: [contactRow(11)] })
    assert.deepEqual(await moved(from, to), { is: 'refused', table: 'contact', key: 1 })
  })
})

describe('what is not equal in the end is seen', { timeout: 120_000 }, () => {
  test('a target that does not keep what it is given', async t => {
    const { from, to } = await scene(t, 10)
    const result = await movedWhile(from, to, async (table, rows) =>
      rows.map(row => (table === 'contact' && row[0] === 7 ? [7, ...row.slice(1, 2), 'Eve', ...row.slice(3)] : row)),
    )
    assert.equal(result.is, 'different')
    const sums = 'sums' in result ? result.sums : []
    const unequal = sums.filter(({ source, target }) => source.checksum !== target.checksum)
    assert.deepEqual(
      unequal.map(({ table, source, target }) => [table, source.rows, target.rows]),
      [['contact', 10, 10]],
    )
  })

  test('a service that uses the target, where a signup takes the number of a contact that is still to come', async t => {
    const { from, to, url } = await scene(t, 10)
    const store = await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })
    t.after(() => store.close())
    const result = await movedWhile(from, to, async (table, rows) => {
      if (table === 'contact') await store.admit(signup('Ada', 'ada@example.com'))
      return rows
    })
    assert.equal(result.is, 'different')
  })

  test('a signup, or a step of the background, in the database that is moved', async t => {
    const { from, to, url, folder } = await scene(t, 10)
    assert.equal((await moved(from, to)).is, 'moved')
    const options = { url, eventName: 'waitlist.joined', destinations: ['webhook'], log: recordingLog().log }
    const store = await postgresStore(options)
    t.after(() => store.close())
    const ways = [() => store.admit(signup('Ada', 'ada@example.com')), () => store.claim('webhook', 1)]
    for (const [i, change] of ways.entries()) {
      const result = await movedWhile(to, sqlite(join(folder, `back-${i}.db`)), async (table, rows) => {
        if (table === 'event') await change()
        return rows
      })
      assert.equal(result.is, 'overtaken')
    }
  })

  test('a replay of deliveries, which the lock of a file does not keep out', async t => {
    const { from, to, path } = await scene(t, 10)
    let replayed = false
    const result = await moved(from, to, {
      progress: ({ phase }) => {
        if (phase !== 'verifying' || replayed) return
        replayed = true
        withDatabase(path, database => database.exec('update delivery set attempts = 5 where number = 1'))
      },
    })
    assert.equal(result.is, 'overtaken')
  })
})

describe('what cannot be moved', { timeout: 120_000 }, () => {
  test('a file that a service uses, on either side', async t => {
    const { from, path, folder, to } = await scene(t, 1)
    const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
    t.after(() => store.close())
    await assert.rejects(moved(from, to), cannot(/in use by another Waitlist process/))
    const other = join(folder, 'other.db')
    writeList(other, {})
    await assert.rejects(moved(sqlite(other), from), cannot(/in use by another Waitlist process/))
  })

  test('a list to itself', async t => {
    const { from, to, folder, path, url } = await scene(t, 1)
    const link = join(folder, 'link.db')
    symlinkSync(path, link)
    await assert.rejects(moved(from, sqlite(link)), cannot(/are the same database/))
    assert.equal((await moved(from, to)).is, 'moved')
    await assert.rejects(moved(to, postgres(url.replace('127.0.0.1', 'localhost'))), cannot(/are the same database/))
  })

  test('nothing', async t => {
    const { to, folder, from } = await scene(t, 1)
    const missing = join(folder, 'missing.db')
    await assert.rejects(moved(sqlite(missing), to), cannot(/There is no database at/))
    assert.equal(existsSync(missing), false)
    const back = join(folder, 'back.db')
    await assert.rejects(moved(to, sqlite(back)), cannot(/There is no waitlist in/))
    assert.equal(existsSync(back), false)
    for (const place of [sqlite(':memory:')]) {
      await assert.rejects(moved(place, to), cannot(/one process only/))
      await assert.rejects(moved(from, place), cannot(/one process only/))
    }
  })

  test('a server that is away, a wrong password, a database of somebody else', async t => {
    const { from, url } = await scene(t, 1)
    const secret = 'do-not-tell'
    await server.run(url, "create role guest login password 'another'", 'create table contact (what text)')
    const wrong = url.replace('owner', `guest:${secret}`)
    const away = `postgres://owner:${secret}@127.0.0.1:1/list`
    for (const [place, sentence] of [
      [wrong, /cannot be used: password authentication failed/],
      [away, /cannot be used: .*ECONNREFUSED/],
      [url, /cannot be made: relation "contact" already exists/],
    ] as const) {
      const hidden = (error: unknown) => cannot(sentence)(error) && !String(error).includes(secret)
      await assert.rejects(moved(from, postgres(place)), hidden)
    }
    await assert.rejects(moved(postgres(away), from), cannot(/ECONNREFUSED/))
  })
})

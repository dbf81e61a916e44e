import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Moved, MoveOptions, Row } from '../../src/stores/operator/move.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { Table } from '../../src/stores/rows.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-database.ts'
import { type MessageProxy, messageProxy } from '../harness/postgres-messages.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import {
  contactRow,
  listIn,
  listOn,
  lists,
  manyContacts,
  moved,
  movedInto,
  movedWhile,
  postgres,
  sqlite,
  unleased,
  writeList,
} from './move.scene.ts'
import { session } from './postgres.stage.ts'

const server = await sharedPostgres()

/** A file with so many contacts, a database without tables, and the name of a file that is not there. */
async function scene(t: TestContext, contacts = 30) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'waitlist.db')
  const copy = join(folder, 'copy.db')
  writeList(path, manyContacts(contacts))
  const url = await server.database()
  return { folder, path, copy, url, from: sqlite(path), to: postgres(url) }
}

const open = (url: string, destinations: readonly string[] = []) =>
  postgresStore({ url, eventName: 'waitlist.joined', destinations, log: recordingLog().log })

/** The tables there are: none where nothing was left. */
const tablesOn = async (url: string): Promise<unknown[]> =>
  rowsIn(url, "select relname from pg_class where relnamespace = 'public'::regnamespace")

const cannot = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OperatorError, String(error))
  assert.match(error.message, sentence)
  return true
}

describe('moving a list', () => {
  test('any list goes to PostgreSQL and back, and is the same', async t => {
    const folder = temporaryFolder(t)
    let runs = 0
    await fc.assert(
      fc.asyncProperty(lists, fc.integer({ min: 1, max: 5 }), async (list, batch) => {
        const [there, back, again] = [1, 2, 3].map(n => join(folder, `${++runs}-${n}.db`)) as [string, string, string]
        const url = await server.database()
        writeList(there, list)
        assert.equal((await moved(sqlite(there), postgres(url), { batch })).is, 'moved')
        assert.deepEqual(await listOn(url), unleased(list))
        assert.equal((await moved(postgres(url), sqlite(back), { batch })).is, 'moved')
        assert.deepEqual(listIn(back), unleased(list))
        assert.equal((await moved(sqlite(back), sqlite(again), { batch })).is, 'moved')
        assert.deepEqual(listIn(again), unleased(list))
        assert.deepEqual(listIn(there), list, 'the source is left as it was')
      }),
      // Each try makes databases, so a smaller example would take minutes; the seed finds it again.
      { numRuns: isSlow ? 15 : 2, endOnFailure: true },
    )
  })

  test('who joins after the move gets the next number, also where the last one is gone', async t => {
    const folder = temporaryFolder(t)
    const path = join(folder, 'waitlist.db')
    const copy = join(folder, 'copy.db')
    const url = await server.database()
    writeList(path, manyContacts(25))
    withDatabase(path, database => database.exec('delete from contact where number > 20'))
    assert.equal((await moved(sqlite(path), postgres(url), { batch: 10 })).is, 'moved')
    assert.equal((await moved(postgres(url), sqlite(copy))).is, 'moved')
    const parts = { path: copy, eventName: 'waitlist.joined', destinations: ['webhook'], minimumFree: 0 }
    for (const store of [await open(url, ['webhook']), await sqliteStore(parts)]) {
      t.after(() => store.close())
      assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
      assert.deepEqual(await store.admit(signup('Visitor', 'VISITOR-7@example.com')), { is: 'already listed' })
    }
    for (const { contact, delivery } of [listIn(copy), await listOn(url)]) {
      for (const rows of [contact, delivery]) {
        assert.deepEqual(
          rows.slice(-2).map(({ number }) => number),
          [20, 26],
        )
      }
    }
  })

  test('a list that nobody joined yet moves, too, and numbers begin with 1', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const url = await server.database()
    writeList(path, {})
    const result = await moved(sqlite(path), postgres(url))
    assert.ok(result.is === 'moved' && result.copied === 0)
    const store = await open(url)
    t.after(() => store.close())
    await store.admit(signup('Ada', 'ada@example.com'))
    assert.deepEqual(
      (await listOn(url)).contact.map(({ number }) => number),
      [1],
    )
  })

  test('from one PostgreSQL database to another, and to a file, for which microseconds are cut, never rounded up', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const [one, other] = [await server.database(), await server.database()]
    const store = await open(one)
    await Promise.all(['ada', 'bob'].map(name => store.admit(signup(name, `${name}@example.com`))))
    await store.close()
    await server.run(one, "update contact set created_at = '2030-01-01 00:00:00.123999+00'")
    assert.equal((await moved(postgres(one), postgres(other))).is, 'moved')
    assert.equal((await moved(postgres(other), sqlite(path))).is, 'moved')
    const { contact, ...rest } = await listOn(one)
    const created_at = Date.UTC(2030, 0, 1, 0, 0, 0, 123)
    assert.deepEqual(listIn(path), { ...rest, contact: contact.map(row => ({ ...row, created_at })) })
  })

  test('through PgBouncer in transaction mode', { skip: pgBouncerProgram === undefined && noPgBouncer }, async t => {
    const folder = temporaryFolder(t)
    const [path, back] = [join(folder, 'waitlist.db'), join(folder, 'back.db')]
    const url = await server.database()
    const bouncer = await startPgBouncer(server.port, 2)
    t.after(() => bouncer.stop())
    writeList(path, manyContacts(100))
    const through = postgres(bouncer.through(url))
    assert.equal((await moved(sqlite(path), through, { batch: 30 })).is, 'moved')
    assert.equal((await moved(through, sqlite(back), { batch: 30 })).is, 'moved')
    assert.deepEqual(listIn(back), listIn(path))
  })
})

describe('only an empty target is taken', () => {
  const refused = cannot(/ is not empty\. Give --to a database .*\. Nothing was copied\.$/)

  test('not one with a single contact, which stays', async t => {
    const { from, to, copy, url } = await scene(t)
    const store = await open(url)
    await store.admit(signup('Eve', 'eve@example.com'))
    await store.close()
    writeList(copy, { contact: [contactRow(99)] })
    const [onServer, inFile] = [await listOn(url), readFileSync(copy, 'hex')]
    await assert.rejects(moved(from, to), refused)
    await assert.rejects(moved(from, sqlite(copy)), refused)
    assert.deepEqual(await listOn(url), onServer)
    assert.equal(readFileSync(copy, 'hex'), inFile)
  })

  test('but one whose tables have no rows, and a file without tables', async t => {
    const { from, path, to, url, copy, folder } = await scene(t)
    await (await open(url)).close()
    writeList(copy, {})
    const blank = join(folder, 'blank.db')
    writeFileSync(blank, '')
    for (const target of [to, sqlite(copy), sqlite(blank)]) assert.equal((await moved(from, target)).is, 'moved')
    assert.deepEqual(await listOn(url), listIn(path))
    for (const file of [copy, blank]) {
      assert.deepEqual(listIn(file), listIn(path))
      const store = await sqliteStore({ path: file, eventName: 'waitlist.joined', minimumFree: 0 })
      assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
      await store.close()
    }
  })
})

describe('a move that is stopped leaves the target as it was, and the next one succeeds', () => {
  for (const [phase, done] of [
    ['copying', 0],
    ['copying', 20],
    ['verifying', 60],
  ] as const) {
    test(`${phase}, at ${done} of 60 rows`, async t => {
      const { from, to, path, copy, url } = await scene(t)
      for (const target of [to, sqlite(copy)]) {
        const leaving = new AbortController()
        const progress: MoveOptions['progress'] = each => each.phase === phase && each.done >= done && leaving.abort()
        const result = await moved(from, target, { batch: 5, signal: leaving.signal, progress })
        assert.deepEqual(result, { is: 'stopped' })
      }
      assert.deepEqual(await tablesOn(url), [])
      assert.equal(existsSync(copy), false)
      for (const target of [to, sqlite(copy)]) assert.equal((await moved(from, target)).is, 'moved')
      assert.deepEqual(await listOn(url), listIn(path))
      assert.deepEqual(listIn(copy), listIn(path))
    })
  }
})

describe('nothing is kept of what is not equal to the source', () => {
  const unequal = (result: Moved) =>
    ('sums' in result ? result.sums : [])
      .filter(({ source, target }) => source.checksum !== target.checksum)
      .map(({ table, source, target }) => [table, source.rows, target.rows])

  for (const [what, expected, change] of [
    [
      'changes a row',
      ['contact', 10, 10],
      (table, rows) => rows.map(row => (table === 'contact' && row.number === 7 ? { ...row, name: 'Eve' } : row)),
    ],
    [
      'loses a row',
      ['delivery', 10, 9],
      (table, rows) => (table === 'delivery' ? rows.filter(({ number }) => number !== 3) : rows),
    ],
  ] satisfies [string, unknown[], (table: Table, rows: readonly Row[]) => readonly Row[]][]) {
    test(`a target that ${what}`, async t => {
      const { from, to, url, copy } = await scene(t, 10)
      for (const target of [to, sqlite(copy)]) {
        const result = await movedWhile(from, target, async (table, rows) => change(table, rows))
        assert.equal(result.is, 'different')
        assert.deepEqual(unequal(result), [expected])
      }
      assert.deepEqual(await tablesOn(url), [])
      assert.equal(existsSync(copy), false)
    })
  }

  test('a signup, or a step of the background, in the database that is moved', async t => {
    const { from, to, url, copy } = await scene(t, 10)
    assert.equal((await moved(from, to)).is, 'moved')
    const store = await open(url, ['webhook'])
    t.after(() => store.close())
    const ways = [() => store.admit(signup('Ada', 'ada@example.com')), () => store.claim('webhook', 1)]
    for (const change of ways) {
      const result = await movedWhile(to, sqlite(copy), async (table, rows) => {
        if (table === 'delivery') await change()
        return rows
      })
      assert.deepEqual(result, { is: 'overtaken' })
      assert.equal(existsSync(copy), false)
    }
  })

  test('a replay of deliveries, which the lock of a file does not keep out', async t => {
    const { from, to, path, url } = await scene(t, 10)
    const change = () => withDatabase(path, database => database.exec('update delivery set attempts = attempts + 1'))
    let given: readonly unknown[] = []
    const result = await movedWhile(from, to, async (table, rows) => {
      if (table === 'contact') change()
      else given = rows.map(({ attempts }) => attempts)
      return rows
    })
    assert.deepEqual(result, { is: 'overtaken' })
    assert.deepEqual(given, Array(10).fill(0), 'what was read is of one moment')
    assert.deepEqual(await tablesOn(url), [])
  })
})

describe('nobody uses the target meanwhile', () => {
  test('a service that runs on empty tables waits or says no, and then has the list', async t => {
    const { from, to, url } = await scene(t, 10)
    const store = await open(url)
    t.after(() => store.close())
    let committing = false
    let early = 0
    let joining: Promise<unknown> | undefined
    const result = await movedInto(from, to, ({ write, commit }) => ({
      async write(table, rows) {
        joining ??= store.admit(signup('Ada', 'ada@example.com')).then(
          admission => {
            if (!committing) early++
            return admission.is
          },
          error => error.name,
        )
        // Longer than a signup that nothing keeps waiting.
        await new Promise(resolve => setTimeout(resolve, 300))
        return write(table, rows)
      },
      commit() {
        committing = true
        return commit()
      },
    }))
    assert.equal(result.is, 'moved')
    assert.equal(early, 0)
    assert.ok(['listed now', 'StoreUnavailable'].includes((await joining) as string))
    assert.deepEqual(await store.admit(signup('Visitor', 'visitor-3@example.com')), { is: 'already listed' })
    await store.admit(signup('Bob', 'bob@example.com'))
    const numbers = (await listOn(url)).contact.map(({ number }) => number as number)
    assert.ok(numbers.at(-1)! > 10 && new Set(numbers).size === numbers.length, numbers.join())
  })

  test('a service that starts while there are no tables yet waits for the end', async t => {
    const { from, to, url } = await scene(t, 10)
    let starting: ReturnType<typeof open> | undefined
    const result = await movedWhile(from, to, async (_, rows) => {
      starting ??= open(url)
      return rows
    })
    assert.equal(result.is, 'moved')
    const store = await starting!
    t.after(() => store.close())
    assert.deepEqual(await store.admit(signup('Visitor', 'visitor-3@example.com')), { is: 'already listed' })
  })

  test('a second move says so, and so does a move while a long transaction writes there', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { from, to, folder, copy, url } = await scene(t, 10)
    const other = join(folder, 'other.db')
    writeList(other, manyContacts(3))
    for (const [target, sentence] of [
      [to, /is in use: a service writes to it, or another move\..* Nothing was copied\.$/],
      [sqlite(copy), /is in use by another Waitlist process\..* Nothing was copied\.$/],
    ] as const) {
      let second: Promise<unknown> | undefined
      const first = await movedWhile(from, target, async (_, rows) => {
        second ??= assert.rejects(moved(sqlite(other), target), cannot(sentence))
        await second
        return rows
      })
      assert.equal(first.is, 'moved')
    }
    assert.equal(listIn(copy).contact.length, 10)

    const busy = await server.database()
    await (await open(busy)).close()
    const writer = await session(t, busy)
    await writer.query('begin; delete from contact where number = 1')
    await assert.rejects(moved(from, postgres(busy)), cannot(/is in use: a service writes to it/))
    await writer.end()
    assert.equal((await moved(from, postgres(busy))).is, 'moved')
    assert.equal((await listOn(url)).contact.length, 10)
  })

  test('a second connection to an empty file', async t => {
    const { from, copy } = await scene(t, 10)
    writeList(copy, {})
    const beside = new DatabaseSync(copy)
    t.after(() => beside.close())
    beside.exec('pragma journal_mode = wal; select * from contact')
    await assert.rejects(moved(from, sqlite(copy)), cannot(/copy\.db cannot be used: database is locked\. Nothing/))
    assert.deepEqual(listIn(copy).contact, [])
  })
})

describe('when the answer to the commit is lost', () => {
  /** A move through a proxy, to which something happens before its commit. */
  async function cut(t: TestContext, happens: (proxy: MessageProxy) => void) {
    const { from, url, path } = await scene(t)
    const proxy = await messageProxy(server.port)
    t.after(() => proxy.close())
    const result = movedInto(from, postgres(proxy.through(url)), ({ commit }) => ({
      async commit() {
        happens(proxy)
        return commit()
      },
    }))
    return { result, url, path }
  }
  /** Before it both sequences are set, with five messages to the server and six back for each. */
  const COMMIT = 2 * 11 + 1

  test('it is asked for, and all is there', async t => {
    let proxied: MessageProxy | undefined
    const { result, url, path } = await cut(t, proxy => {
      proxied = proxy
      proxy.after(COMMIT, 'cut')
    })
    assert.equal((await result).is, 'moved')
    assert.deepEqual(proxied?.end(), { side: 'frontend', name: 'Query' })
    assert.deepEqual(await listOn(url), listIn(path))
  })

  test('it is asked for, and nothing is there', async t => {
    let proxied: MessageProxy | undefined
    const { result, url } = await cut(t, proxy => {
      proxied = proxy
      proxy.after(COMMIT - 1, 'cut')
    })
    await assert.rejects(result, cannot(/cannot be used: /))
    assert.deepEqual(proxied?.end(), { side: 'backend', name: 'ReadyForQuery' })
    assert.deepEqual(await tablesOn(url), [])
  })

  test('and nobody can be asked, that is what is said', { skip: !isSlow && 'it runs in .ci/run' }, async t => {
    const { result, url, path } = await cut(t, proxy => {
      proxy.after(COMMIT, 'cut')
      proxy.refuse(true)
    })
    assert.deepEqual(await result, { is: 'unknown' })
    assert.deepEqual(await listOn(url), listIn(path))
  })
})

describe('the file that is made', () => {
  test('is readable by its owner alone, from the start, and nothing lies beside it', async t => {
    const { from, copy, folder } = await scene(t)
    const modes: number[] = []
    const look = () => modes.push(statSync(`${copy}.unfinished-move`).mode & 0o777)
    const result = await movedWhile(from, sqlite(copy), async (_, rows) => {
      look()
      return rows
    })
    assert.equal(result.is, 'moved')
    assert.deepEqual([...modes, statSync(copy).mode & 0o777], [0o600, 0o600, 0o600])
    assert.deepEqual(
      readdirSync(folder).filter(name => name.startsWith('copy')),
      ['copy.db', 'copy.db-lock'],
    )
  })

  test('is reached through a link, too', async t => {
    const { from, path, copy, folder } = await scene(t)
    writeList(copy, {})
    const link = join(folder, 'link.db')
    symlinkSync(copy, link)
    assert.equal((await moved(from, sqlite(link))).is, 'moved')
    assert.deepEqual(listIn(copy), listIn(path))
  })
})

describe('on a server with its own mind', { skip: !isSlow && 'it runs in .ci/run' }, () => {
  test('limits of time and of safety that a role has are not those of a move', async t => {
    const { from, to, url, path } = await scene(t)
    const name = new URL(url).pathname.slice(1)
    await (await open(url)).close()
    await server.run(
      url,
      'create table seen (commits text)',
      `create function see() returns trigger language plpgsql as
        $$ begin insert into seen values (current_setting('synchronous_commit')); return null; end $$`,
      'create trigger see after insert on contact execute function see()',
      ...['transaction_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout'].map(
        limit => `alter database ${name} set ${limit} = '500ms'`,
      ),
      `alter database ${name} set synchronous_commit = off`,
      `alter database ${name} set default_transaction_isolation = 'serializable'`,
    )
    const result = await movedInto(from, to, ({ commit }) => ({
      async commit() {
        await new Promise(resolve => setTimeout(resolve, 1_000))
        return commit()
      },
    }))
    assert.equal(result.is, 'moved')
    assert.deepEqual(await rowsIn(url, 'select commits from seen'), [{ commits: 'on' }])
    assert.deepEqual(await listOn(url), listIn(path))
  })

  test('a role that owns nothing is told which right it lacks, and moves there and back with it', async t => {
    const { from, url, path, copy } = await scene(t)
    await (await open(url)).close()
    await server.run(url, makeRole, ...grants(ROLE))
    const role = postgres(roleUrl(url))
    const lacking = async (way: () => Promise<unknown>, right: string) => {
      let grant = ''
      await assert.rejects(way(), error => {
        grant =
          /The role ".*" lacks rights in .*\. Its owner gives them with: (grant .*;) Nothing/.exec(
            String(error),
          )?.[1] ?? ''
        return cannot(new RegExp(`grant ${right} on sequence public\\.contact_number_seq`))(error)
      })
      await server.run(url, grant)
    }
    await lacking(() => moved(from, role), 'update')
    assert.equal((await moved(from, role)).is, 'moved')
    assert.deepEqual(await listOn(url), listIn(path))
    await lacking(() => moved(role, sqlite(copy)), 'select')
    assert.equal((await moved(role, sqlite(copy))).is, 'moved')
    assert.deepEqual(listIn(copy), listIn(path))
  })
})

describe('what cannot be moved', () => {
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
    const memory = sqlite(':memory:')
    await assert.rejects(moved(memory, to), cannot(/one process only/))
    await assert.rejects(moved(from, memory), cannot(/one process only/))
  })

  test('a server that is away, a wrong password, a database of somebody else', async t => {
    const { from, url } = await scene(t, 1)
    const secret = 'do-not-tell'
    await server.run(url, makeRole, 'create table contact (what text)')
    const wrong = roleUrl(url, secret)
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

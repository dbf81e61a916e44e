import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { OperatorError } from '../../src/config/operator.ts'
import { backUp } from '../../src/store/sqlite/backup.ts'
import { restore } from '../../src/store/sqlite/restore.ts'
import type { Store } from '../../src/store/store.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { emailsOf, onSqlite, signup } from './place.ts'

async function home(t: TestContext) {
  const place = await onSqlite(t)
  const { path } = place.location as { path: string }
  const folder = join(path, '..')
  /** Runs a service for a moment. */
  async function serve(use: (store: Store) => Promise<unknown>): Promise<void> {
    const store = await place.open({ destinations: ['webhook'] })
    await use(store).finally(store.close)
  }
  return {
    folder,
    path,
    copy: join(folder, 'copy.db'),
    serve,
    erase: place.operator.erase,
    rows: place.sql,
    join: (...who: readonly string[]) =>
      serve(async store => {
        for (const each of who) await store.admit(signup(each, `${each}@example.com`))
      }),
    names: (file = path) => contactsIn(file).map(({ email }) => email.replace('@example.com', '')),
    leftovers: () => readdirSync(folder).filter(name => /unfinished|before/.test(name)),
  }
}

const cannot = (sentence: RegExp) => (error: Error) => {
  assert.ok(error instanceof OperatorError, String(error.stack))
  assert.match(error.message, sentence)
  return true
}

describe('a backup of a SQLite file', () => {
  test('is one moment of the running service, under its name only when it is whole', async t => {
    const { path, copy, serve, names, folder } = await home(t)
    await serve(async store => {
      await store.admit(signup('Ada', 'ada@example.com'))
      assert.equal((await backUp(path, copy)).contacts, 1)
      await store.admit(signup('Bob', 'bob@example.com'))
    })
    assert.deepEqual(names(copy), ['ada'])
    await assert.rejects(backUp(path, copy), cannot(/copy\.db exists already/))
    rmSync(copy)
    for (const ending of ['-wal', '-journal']) {
      writeFileSync(copy + ending, 'left')
      await assert.rejects(backUp(path, copy), cannot(/copy\.db-\w+ was left by another database of that name/))
      rmSync(copy + ending)
    }
    await assert.rejects(backUp(join(folder, 'none.db'), copy), cannot(/There is no database at/))
    assert.deepEqual(
      readdirSync(folder).filter(name => name.startsWith('copy')),
      [],
    )
  })

  test('of a damaged file is not made', async t => {
    const { path, copy, join: signUp } = await home(t)
    await signUp(...Array.from({ length: 100 }, (_, i) => `v${i}`))
    const page = withDatabase(path, database => {
      return database.prepare("select rootpage from sqlite_schema where name = 'contact'").get()!.rootpage as number
    })
    writeFileSync(path, readFileSync(path).fill(0xa5, 4_096 * (page - 1), 4_096 * page))
    await assert.rejects(backUp(path, copy), cannot(/cannot be written: .*malformed/))
    assert.equal(existsSync(copy), false)
  })
})

describe('restoring a backup of a SQLite file', () => {
  test('the backup is the list, and what was there is kept beside it, its log included, for this user alone', async t => {
    const { folder, path, copy, join: signUp, names } = await home(t)
    await signUp('ada', 'bob')
    await backUp(path, copy)
    await signUp('cyd')
    // As after a kill: what was committed last is in the log alone.
    withDatabase(path, database => {
      database.exec("pragma wal_autocheckpoint = 0; update contact set name = 'Late' where name = 'cyd'")
      for (const ending of ['', '-wal']) copyFileSync(path + ending, `${path}.crashed${ending}`)
    })
    for (const ending of ['', '-wal']) {
      copyFileSync(`${path}.crashed${ending}`, path + ending)
      rmSync(`${path}.crashed${ending}`)
    }
    const { kept, ...restored } = await restore(path, copy)
    assert.deepEqual(restored, { contacts: 2, erased: 0, doubtful: 2 })
    assert.match(kept!, /\/waitlist\.db\.before-restore-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/)
    assert.deepEqual(names(), ['ada', 'bob'])
    assert.deepEqual(
      contactsIn(kept!).map(({ name }) => name),
      ['ada', 'bob', 'Late'],
    )
    const files = readdirSync(folder).map(name => join(folder, name))
    assert.deepEqual(files.sort(), [copy, path, `${path}-lock`, kept!].sort())
    for (const each of files) assert.equal(statSync(each).mode & 0o777, 0o600, each)
    await signUp('dot')
    assert.deepEqual(names(), ['ada', 'bob', 'dot'])
  })

  test('who was erased since stays erased; who came back since is not in it', async t => {
    const { path, copy, erase, join: signUp, names, rows } = await home(t)
    await signUp('ada', 'bob', 'cyd')
    await backUp(path, copy)
    await erase('ada@example.com')
    await erase('bob@example.com')
    await signUp('bob')
    const kept = async () => [
      await rows('select hash, erased_at from erased order by hash'),
      await rows('select name, value from secret'),
    ]
    const before = await kept()
    const { contacts, erased } = await restore(path, copy)
    assert.deepEqual([contacts, erased], [1, 2])
    assert.deepEqual(names(), ['cyd'])
    assert.deepEqual(await kept(), before)
    const bytes = readFileSync(path, 'latin1')
    assert.ok(!bytes.includes('ada@') && !bytes.includes('bob@') && bytes.includes('cyd@'))
    await signUp('ada')
    assert.deepEqual(names(), ['cyd', 'ada'], 'by themselves')
  })

  test('what waits in the backup is in doubt and held by nobody; what ended stays as it was', async t => {
    const { path, copy, join: signUp, serve, rows } = await home(t)
    await signUp('ada', 'bob', 'cyd')
    await serve(async store => {
      const [told] = await store.claim('webhook', 2)
      await store.settle(told!, { is: 'delivered' })
      await backUp(path, copy)
    })
    assert.equal((await restore(path, copy)).doubtful, 2)
    await rows('update delivery set due_at = 0 returning 1')
    await serve(async store => {
      const claimed = await store.claim('webhook', 9)
      assert.deepEqual(emailsOf(claimed).sort(), ['bob@example.com', 'cyd@example.com'])
      assert.ok(claimed.every(({ doubt }) => doubt))
    })
  })

  test('where there is no database it is made; a log without its database, and a damaged one, are not thrown away', async t => {
    const { path, copy, join: signUp, names, leftovers } = await home(t)
    await signUp('ada')
    await backUp(path, copy)
    rmSync(path)
    assert.deepEqual(await restore(path, copy), { contacts: 1, erased: 0, doubtful: 1, kept: null })
    assert.deepEqual(names(), ['ada'])
    writeFileSync(path, readFileSync(path).fill(0xa5, 4_096))
    await assert.rejects(restore(path, copy), cannot(/is damaged .*nobody knows who was erased there\. Move it away/))
    rmSync(path)
    writeFileSync(`${path}-wal`, 'left')
    await assert.rejects(restore(path, copy), cannot(/-wal was left by another database of that name\. Move it away/))
    assert.deepEqual(leftovers(), [])
  })

  test('it is refused while a service runs or somebody reads; then nothing is changed', async t => {
    const { path, copy, join: signUp, serve, names, leftovers } = await home(t)
    await signUp('ada')
    await backUp(path, copy)
    await signUp('bob')
    await serve(() => assert.rejects(restore(path, copy), cannot(/is in use by another Waitlist process/)))
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('begin')
    reader.prepare('select count(*) from contact').get()
    await assert.rejects(restore(path, copy), cannot(/is in use: .*End that first/))
    reader.close()
    assert.deepEqual(names(), ['ada', 'bob'])
    assert.deepEqual(leftovers(), [])
  })

  test('what is no backup is refused: nothing, another program, a newer schema, damage, the database itself', async t => {
    const { path, copy, join: signUp, names, leftovers } = await home(t)
    await signUp('ada', ...Array.from({ length: 100 }, (_, i) => `v${i}`))
    const refused = (sentence: RegExp, file = copy) => assert.rejects(restore(path, file), cannot(sentence))
    await refused(/There is no file/)
    await refused(/is the database itself/, path)
    writeFileSync(copy, '')
    await refused(/is no backup: it has no waitlist/)
    writeFileSync(copy, 'a letter, and no database'.repeat(1_000))
    await refused(/copy\.db cannot be restored: file is not a database/)
    rmSync(copy)
    withDatabase(copy, database => database.exec('create table theirs (x)'))
    await refused(/is a database of another program/)
    rmSync(copy)
    await backUp(path, copy)
    withDatabase(copy, database => database.exec('pragma user_version = 99'))
    await refused(/newer Waitlist/)
    withDatabase(copy, database => database.exec('pragma user_version = 1'))
    const page = withDatabase(copy, database => {
      return database.prepare("select rootpage from sqlite_schema where name = 'contact'").get()!.rootpage as number
    })
    writeFileSync(copy, readFileSync(copy).fill(0xa5, 4_096 * (page - 1), 4_096 * page))
    await refused(/copy\.db cannot be restored: .*malformed.* is as it was/)
    assert.equal(names().length, 101)
    assert.deepEqual(leftovers(), [])
  })

  test('killed at any moment, there is one whole list, and nothing of the other is lost', {
    timeout: 300_000,
  }, async t => {
    const { folder, path, copy, join: signUp } = await home(t)
    await signUp('ada')
    const add = (first: number, last: number) =>
      withDatabase(path, database =>
        database.exec(
          'insert into contact (id, name, email, email_key, state, created_at) with recursive n (i) as' +
            ` (select ${first} union all select i + 1 from n where i < ${last})` +
            " select format('%036d', i), 'Visitor', i || '@example.com', i || '@example.com', 'listed', 0 from n",
        ),
      )
    const [before, after] = [20_000, 10_000]
    add(2, after)
    await backUp(path, copy)
    add(after + 1, before)
    const original = join(folder, 'original.db')
    await backUp(path, original)
    const count = (file: string) =>
      withDatabase(file, database => {
        assert.equal(database.prepare('pragma integrity_check').get()?.integrity_check, 'ok')
        return Number(database.prepare('select count(*) as n from contact').get()?.n)
      })
    const source = new URL('../../src/store/sqlite/restore.ts', import.meta.url)
    const code = `import { restore } from ${JSON.stringify(source)}; process.stdout.write('go')
      await restore(${JSON.stringify(path)}, ${JSON.stringify(copy)})`
    const seen = new Set<number>()
    const kills = isSlow ? 30 : 6
    for (let i = 0; i < kills; i++) {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: ['ignore', 'pipe', 2] })
      const exited = once(child, 'exit')
      await once(child.stdout!, 'data')
      await wait((400 * i) / kills)
      child.kill('SIGKILL')
      await exited
      const now = count(path)
      seen.add(now)
      assert.ok(now === before || now === after, `${now}`)
      const kept = readdirSync(folder).filter(name => /before-restore-[^.]*$/.test(name))
      if (now === after) assert.ok(kept.some(name => count(join(folder, name)) === before))
      for (const name of kept) rmSync(join(folder, name))
      if (now === before) continue
      for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true })
      copyFileSync(original, path)
    }
    t.diagnostic(`seen: ${[...seen].join(', ')}`)
    await restore(path, copy)
    assert.equal(existsSync(`${path}.unfinished-restore`), false)
    assert.equal(count(path), after)
    // A service starts with it.
    await signUp('cyd')
    assert.equal(count(path), after + 1)
  })
})

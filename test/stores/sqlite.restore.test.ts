import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { publish } from '../../src/stores/sqlite/backup.ts'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { emailsOf, signup } from '../contracts/store.place.ts'
import { contactsIn, sqlOn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listIn, manyContacts, writeList } from './move.scene.ts'

interface Home {
  readonly folder: string
  readonly path: string
  readonly copy: string
  readonly operator: ReturnType<typeof sqliteOperator>
  /** Runs a service for a moment. */
  serve(use: (store: Store) => Promise<unknown>, provider?: string | null): Promise<void>
  join(...who: readonly string[]): Promise<void>
  emails(): readonly string[]
}

function home(t: TestContext): Home {
  const folder = temporaryFolder(t)
  const path = join(folder, 'waitlist.db')
  const serve: Home['serve'] = async (use, provider = null) => {
    const store = await sqliteStore({
      path,
      eventName: 'waitlist.joined',
      destinations: ['webhook'],
      minimumFree: 0,
      provider,
    })
    try {
      await use(store)
    } finally {
      await store.close()
    }
  }
  return {
    folder,
    path,
    copy: join(folder, 'copy.db'),
    operator: sqliteOperator(path),
    serve,
    join: (...who) =>
      serve(async store => {
        for (const each of who) await store.admit(signup(each, `${each}@example.com`))
      }),
    emails: () => contactsIn(path).map(({ email }) => email.replace('@example.com', '')),
  }
}

const cannot = (sentence: RegExp) => (error: Error) => {
  assert.ok(error instanceof OperatorError, String(error.stack))
  assert.match(error.message, sentence)
  return true
}

describe('restoring a backup of a SQLite file', () => {
  test('the backup is the list, and what was there is kept beside it, its log included, for this user alone', async t => {
    const { folder, path, copy, operator, join: signUp, emails } = home(t)
    await signUp('ada', 'bob')
    await operator.backUp(copy)
    await signUp('cyd')
    const { kept, ...restored } = await operator.restore(copy)
    assert.deepEqual(restored, { contacts: 2, erased: 0, doubtful: 2 })
    const { file, ...had } = kept!
    assert.deepEqual(had, { contacts: 3, missing: 1, forgotten: 0 })
    assert.match(file, /\/waitlist\.db\.before-restore-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/)
    assert.deepEqual(emails(), ['ada', 'bob'])
    assert.deepEqual(
      contactsIn(file).map(({ email }) => email),
      ['ada@example.com', 'bob@example.com', 'cyd@example.com'],
    )
    assert.deepEqual(
      readdirSync(folder)
        .map(name => join(folder, name))
        .sort(),
      [copy, path, `${path}-lock`, file].sort(),
    )
    for (const each of [path, file]) assert.equal(statSync(each).mode & 0o777, 0o600)
    await signUp('dot')
    assert.deepEqual(emails(), ['ada', 'bob', 'dot'])
    assert.equal(existsSync(copy), true)
  })

  test('a log that the last service could not bring into the file is kept with it', async t => {
    const { path, copy, operator, join: signUp } = home(t)
    await signUp('ada')
    await operator.backUp(copy)
    await signUp('bob')
    // As after a kill: what was committed last is in the log alone.
    const late = "update contact set name = 'Late' where name = 'bob'"
    withDatabase(path, database => {
      database.exec(`pragma wal_autocheckpoint = 0; ${late}`)
      for (const ending of ['', '-wal']) copyFileSync(path + ending, `${path}.crashed${ending}`)
    })
    for (const ending of ['', '-wal']) copyFileSync(`${path}.crashed${ending}`, path + ending)
    const { kept } = await operator.restore(copy)
    assert.deepEqual(
      contactsIn(kept!.file).map(({ name }) => name),
      ['ada', 'Late'],
    )
    assert.equal(existsSync(`${path}-wal`), false)
  })

  test('who was erased since stays erased, and can be told from imports; who came back since is not in it', async t => {
    const { path, copy, operator, join: signUp, emails } = home(t)
    await signUp('ada', 'bob', 'cyd')
    await operator.backUp(copy)
    await operator.erase('ada@example.com')
    await operator.erase('bob@example.com')
    await signUp('bob')
    const today = await sqlOn(path)('select hash, erased_at from erased order by hash')
    const secrets = await sqlOn(path)('select name, value from secret')
    const { contacts, erased, kept } = await operator.restore(copy)
    assert.deepEqual([contacts, erased, kept?.missing], [1, 2, 1])
    assert.deepEqual(emails(), ['cyd'])
    assert.deepEqual(await sqlOn(path)('select hash, erased_at from erased order by hash'), today)
    assert.deepEqual(await sqlOn(path)('select name, value from secret'), secrets)
    const bytes = readFileSync(path, 'latin1')
    assert.ok(!bytes.includes('ada@') && !bytes.includes('bob@') && bytes.includes('cyd@'))
    assert.deepEqual(await sqlOn(path)('select 1 from delivery where contact not in (select number from contact)'), [])
    await signUp('ada')
    assert.deepEqual(emails(), ['cyd', 'ada'], 'by themselves')
  })

  test('what waits in the backup is in doubt and held by nobody; what ended stays as it was', async t => {
    const { path, copy, operator, join: signUp, serve } = home(t)
    await signUp('ada', 'bob', 'cyd')
    await serve(async store => {
      const [told] = await store.claim('webhook', 2)
      await store.settle(told!, { is: 'delivered' })
      await operator.backUp(copy)
    })
    assert.equal((await operator.restore(copy)).doubtful, 2)
    const rows = await sqlOn(path)('select state, doubt, token from delivery order by number')
    assert.deepEqual(
      rows.map(row => ({ ...row })),
      [
        { state: 'delivered', doubt: 0, token: null },
        { state: 'waiting', doubt: 1, token: null },
        { state: 'waiting', doubt: 1, token: null },
      ],
    )
    await sqlOn(path)('update delivery set due_at = 0')
    await serve(async store => {
      const claimed = await store.claim('webhook', 9)
      assert.deepEqual(emailsOf(claimed).sort(), ['bob@example.com', 'cyd@example.com'])
      assert.ok(claimed.every(({ doubt }) => doubt))
    })
  })

  test('where there is no database yet, or only the log of one, it is made', async t => {
    const { path, copy, operator, join: signUp, emails } = home(t)
    await signUp('ada')
    await operator.backUp(copy)
    rmSync(path)
    assert.deepEqual(await operator.restore(copy), { contacts: 1, erased: 0, doubtful: 1, kept: null })
    assert.deepEqual(emails(), ['ada'])
    rmSync(path)
    writeFileSync(`${path}-wal`, 'left')
    writeFileSync(`${path}-shm`, 'left')
    const { kept } = await operator.restore(copy)
    assert.equal(kept?.contacts, null)
    assert.equal(readFileSync(`${kept!.file}-wal`, 'utf8'), 'left')
    assert.deepEqual(emails(), ['ada'])
  })

  test('a damaged database is replaced all the same, and kept as it was', async t => {
    for (const damage of ['all', 'inside']) {
      const { path, copy, operator, join: signUp, emails } = home(t)
      await signUp('ada')
      await operator.backUp(copy)
      const bytes = readFileSync(path)
      if (damage === 'all') bytes.fill(0xa5)
      else bytes.fill(0xa5, 4_096)
      writeFileSync(path, bytes)
      const { kept } = await operator.restore(copy)
      assert.equal(kept?.contacts, null, damage)
      // Its journal mode, which is in the first 100 bytes, may be another one now.
      assert.deepEqual(readFileSync(kept!.file).subarray(100), bytes.subarray(100))
      assert.deepEqual(emails(), ['ada'])
    }
  })

  test('it is refused while a service runs or somebody reads; then nothing is changed, and nothing is left behind', async t => {
    const { folder, path, copy, operator, join: signUp, serve, emails } = home(t)
    await signUp('ada')
    await operator.backUp(copy)
    await signUp('bob')
    await serve(async () => {
      await assert.rejects(operator.restore(copy), cannot(/is in use by another Waitlist process/))
    })
    const reader = new (await import('node:sqlite')).DatabaseSync(path, { readOnly: true })
    reader.exec('begin; select count(*) from contact')
    await assert.rejects(operator.restore(copy), cannot(/is in use: .*End that first/))
    reader.close()
    assert.deepEqual(emails(), ['ada', 'bob'])
    assert.deepEqual(
      readdirSync(folder).filter(name => /unfinished|before/.test(name)),
      [],
    )
  })

  test('what is no backup is refused: nothing, another program, a newer schema, damage, the database itself', async t => {
    const { folder, path, copy, operator, join: signUp, emails } = home(t)
    await signUp('ada', ...Array.from({ length: 100 }, (_, i) => `v${i}`))
    const refused = (sentence: RegExp, file = copy) => assert.rejects(operator.restore(file), cannot(sentence))
    await refused(/There is no file/)
    await refused(/is the database itself/, path)
    writeFileSync(copy, '')
    await refused(/is no backup: it has no waitlist/)
    writeFileSync(copy, 'a letter, and no database'.repeat(1_000))
    await refused(/copy\.db cannot be read: file is not a database/)
    rmSync(copy)
    withDatabase(copy, database => database.exec('create table theirs (x)'))
    await refused(/is a database of another program/)
    rmSync(copy)
    await operator.backUp(copy)
    withDatabase(copy, database => database.exec('pragma user_version = 99'))
    await refused(/newer Waitlist/)
    withDatabase(copy, database => database.exec('pragma user_version = 1'))
    const page = withDatabase(copy, database => {
      return database.prepare("select rootpage from sqlite_schema where name = 'contact'").get()!.rootpage as number
    })
    writeFileSync(copy, readFileSync(copy).fill(0xa5, 4_096 * (page - 1), 4_096 * page))
    await refused(/copy\.db cannot be restored: .*malformed.* is as it was/)
    await assert.rejects(sqliteOperator(':memory:').restore(copy), cannot(/one process only/))
    await assert.rejects(operator.restore(null), cannot(/Name the backup/))
    assert.equal(emails().length, 101)
    assert.deepEqual(
      readdirSync(folder).filter(name => /unfinished|before/.test(name)),
      [],
    )
  })
})

test('a backup is not made beside the log of another database, which SQLite would apply to it', async t => {
  const folder = temporaryFolder(t)
  const [path, copy] = [join(folder, 'waitlist.db'), join(folder, 'copy.db')]
  writeList(path, manyContacts(3))
  for (const ending of ['-wal', '-journal']) {
    writeFileSync(copy + ending, 'left')
    await assert.rejects(sqliteOperator(path).backUp(copy), /copy\.db-\w+ was left by another database .*; remove it/)
    assert.equal(existsSync(copy), false)
    rmSync(copy + ending)
  }
  await sqliteOperator(path).backUp(copy)
  assert.deepEqual(listIn(copy), listIn(path))
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('copy')),
    ['copy.db'],
  )
})

test('a copy that is damaged does not get its name', t => {
  const folder = temporaryFolder(t)
  const [path, copy] = [join(folder, 'unfinished.db'), join(folder, 'copy.db')]
  writeList(path, manyContacts(1_000))
  const bytes = readFileSync(path)
  // A page in the middle, of 4 KiB.
  const page = Math.floor(bytes.length / 8_192) * 4_096
  writeFileSync(path, bytes.fill(0, page, page + 4_096))
  assert.throws(() => publish(path, copy), /the copy is damaged/)
  assert.equal(existsSync(copy), false)
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { run } from '../harness/command.ts'
import { contactsIn, sqlOn, withDatabase } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { runProgram } from '../harness/program.ts'
import { operatorAt, storeAt } from '../harness/store.ts'
import { signup } from './place.ts'

/** A list in `data/waitlist.db` of a folder, and the commands that copy it to `copy.db` and back. */
async function listed(t: TestContext, ...who: readonly string[]) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  async function signUp(...who: readonly string[]): Promise<void> {
    const store = await storeAt(path)
    for (const each of who) await store.admit(signup(each, `${each}@example.com`))
    await store.close()
  }
  const command = async (name: string, file = 'copy.db') => {
    const { code, stdout, stderr } = await run(t, cwd, [name, file])
    return { code, said: stdout + stderr }
  }
  await signUp(...who)
  return {
    cwd,
    path,
    copy: join(cwd, 'copy.db'),
    signUp,
    erase: operatorAt(path).erase,
    backUp: (file?: string) => command('backup', file),
    restore: (file?: string) => command('restore', file),
    names: (file = path) => contactsIn(file).map(({ name }) => name),
    files: () => readdirSync(cwd, { recursive: true }).sort(),
  }
}

type List = Awaited<ReturnType<typeof listed>>

/** Makes a page of the contacts unreadable. */
function damage(path: string): void {
  const [page] = withDatabase(path, database => {
    database.exec('pragma wal_checkpoint(truncate)')
    return database.prepare("select rootpage from sqlite_schema where name = 'contact'").all()
  }) as unknown as [{ rootpage: number }]
  writeFileSync(path, readFileSync(path).fill(0xa5, 4_096 * (page.rootpage - 1), 4_096 * page.rootpage))
}

const refusals = (
  command: 'backUp' | 'restore',
  cases: Readonly<Record<string, readonly [prepare: (list: List) => unknown, sentence: RegExp, file?: string]>>,
) => {
  for (const [what, [prepare, sentence, file]] of Object.entries(cases)) {
    test(`is refused, and changes nothing: ${what}`, async t => {
      const list = await listed(t, 'ada')
      await list.backUp()
      const end = (await prepare(list)) as (() => unknown) | undefined
      const before = list.files()
      const { code, said } = await list[command](file)
      assert.equal(code, 1)
      assert.match(said, sentence)
      assert.deepEqual(list.files(), before)
      await end?.()
    })
  }
}

describe('waitlist backup', { concurrency: true }, () => {
  test('beside a running service it copies everything that was acknowledged before', async t => {
    const cwd = temporaryFolder(t)
    const service = await runProgram(t, { HOST: '127.0.0.1' }, { cwd })
    const signUp = async (email: string) => assert.equal((await visit(service, email))?.status, 200)
    for (let i = 0; i < 10; i++) await signUp(`v${i}@example.com`)
    const { code, stdout, stderr } = await run(t, cwd, ['backup', 'copy.db'])
    assert.match(stderr, /^copy\.db: 10 contacts, 1 MiB, checked\.\n$/)
    assert.deepEqual([code, stdout], [0, ''], 'a copy may be on its way there')
    await signUp('later@example.com')
    const copied = contactsIn(join(cwd, 'copy.db'))
    assert.deepEqual(
      copied.map(({ email, events }) => [email, events]),
      Array.from({ length: 10 }, (_, i) => [`v${i}@example.com`, 1]),
    )
  })

  refusals('backUp', {
    'the file exists': [() => {}, /copy\.db exists already/],
    'a log was left there': [
      ({ cwd }) => writeFileSync(join(cwd, 'other.db-wal'), 'left'),
      /other\.db-wal was left by another database/,
      'other.db',
    ],
    'there is no such folder': [() => {}, /no\/such\/copy\.db cannot be written: ENOENT/, 'no/such/copy.db'],
    'there is no database': [({ path }) => rmSync(path), /There is no database at data\/waitlist\.db/, 'other.db'],
    'the database is damaged': [({ path }) => damage(path), /other\.db cannot be written: .*malformed/, 'other.db'],
  })
})

describe('waitlist restore', { concurrency: true }, () => {
  test('the backup is the list; what was there is kept beside it, its log included; nobody else can read either', async t => {
    const { cwd, path, backUp, restore, signUp, names } = await listed(t, 'ada', 'bob')
    await sqlOn(path)(
      'insert into delivery (contact, destination, kind, state, attempts, doubt, due_at)' +
        " select number, 'webhook', 'joined', 'waiting', 0, 0, 0 from contact",
    )
    await backUp()
    await signUp('cyd')
    // As after a kill: what was committed last is in the log alone.
    withDatabase(path, database => {
      database.exec("pragma wal_autocheckpoint = 0; update contact set name = 'late' where name = 'cyd'")
      for (const ending of ['', '-wal']) copyFileSync(path + ending, `${path}.crashed${ending}`)
    })
    for (const ending of ['', '-wal']) {
      copyFileSync(`${path}.crashed${ending}`, path + ending)
      rmSync(`${path}.crashed${ending}`)
    }
    const { code, said } = await restore()
    assert.equal(code, 0)
    const [kept] = readdirSync(join(cwd, 'data')).filter(name => name.includes('before-restore'))
    assert.match(kept!, /^waitlist\.db\.before-restore-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/)
    assert.deepEqual(said.split('\n'), [
      'copy.db is the database now: 2 contacts.',
      'Taken out, since they were erased after it was made: 0 contacts.',
      `What was there before is kept: data/${kept}`,
      '',
    ])
    assert.deepEqual(names(), ['ada', 'bob'])
    assert.deepEqual(
      (await sqlOn(path)('select doubt from delivery')).map(({ doubt }) => doubt),
      [1, 1],
    )
    assert.deepEqual(names(join(cwd, 'data', kept!)), ['ada', 'bob', 'late'])
    assert.deepEqual(readdirSync(join(cwd, 'data')).sort(), ['waitlist.db', 'waitlist.db-lock', kept])
    assert.equal(statSync(path).mode & 0o777, 0o600)
    await signUp('dot')
    assert.deepEqual(names(), ['ada', 'bob', 'dot'])
  })

  test('who was erased since stays erased, even if other rows of the old database are damaged', async t => {
    const { path, backUp, restore, signUp, erase, names } = await listed(t, 'ada', 'bob', 'cyd')
    await backUp()
    await erase('ada@example.com')
    await erase('bob@example.com')
    await signUp('bob')
    const kept = async () => [
      await sqlOn(path)('select hash, erased_at from erased order by hash'),
      await sqlOn(path)('select name, value from secret'),
    ]
    const before = await kept()
    damage(path)
    assert.match((await restore()).said, /^Taken out, since they were erased after it was made: 2 contacts\.$/m)
    assert.deepEqual(names(), ['cyd'])
    assert.deepEqual(await kept(), before)
    const bytes = readFileSync(path, 'latin1')
    assert.ok(!bytes.includes('ada@') && !bytes.includes('bob@') && bytes.includes('cyd@'))
    await signUp('ada')
    assert.deepEqual(names(), ['cyd', 'ada'], 'by themselves')
  })

  test('by root on a new machine, it belongs to the owner of its folder', {
    skip: process.geteuid?.() !== 0 && 'only root can give files away',
  }, async t => {
    const { path, backUp, restore, names } = await listed(t, 'ada')
    await backUp()
    const folder = join(path, '..')
    rmSync(folder, { recursive: true })
    mkdirSync(folder)
    chownSync(folder, 65_533, 65_534)
    assert.equal((await restore()).said.split('\n').length, 3, 'nothing was there before')
    for (const ending of ['', '-lock']) assert.equal(statSync(path + ending).uid, 65_533, ending)
    assert.deepEqual(names(), ['ada'])
  })

  const reading = ({ path }: List) => {
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('begin')
    reader.prepare('select count(*) from contact').get()
    return () => reader.close()
  }
  const replace = (text: string) => (list: List) => {
    writeFileSync(list.copy, '')
    withDatabase(list.copy, database => database.exec(text))
  }
  refusals('restore', {
    'a service runs': [
      async ({ path }) => (await storeAt(path)).close,
      /data\/waitlist\.db is in use by another Waitlist process/,
    ],
    'somebody reads': [reading, /data\/waitlist\.db is in use, or damaged: database is locked\. End what uses it/],
    'the old database is garbage': [
      ({ path }) => writeFileSync(path, readFileSync(path).fill(0xa5, 0, 4_096)),
      /data\/waitlist\.db is in use, or damaged: file is not a database\. .*move it away/,
    ],
    'the log of a database that is gone': [
      ({ path }) => {
        rmSync(path)
        writeFileSync(`${path}-wal`, 'left')
      },
      /data\/waitlist\.db-wal was left by another database/,
    ],
    'there is no backup': [
      ({ copy }) => rmSync(copy),
      /copy\.db cannot be restored: .*\. data\/waitlist\.db is as it was/,
    ],
    'an empty file': [({ copy }) => writeFileSync(copy, ''), /copy\.db cannot be restored: it is empty/],
    'a letter': [({ copy }) => writeFileSync(copy, 'Dear Ada'.repeat(1_000)), /restored: file is not a database/],
    'a database of another program': [replace('create table theirs (x)'), /copy\.db was made by another program/],
    'a damaged backup': [({ copy }) => damage(copy), /copy\.db cannot be restored: .*malformed/],
  })

  test('killed at any moment, there is one whole list, and nothing of the other is lost', {
    timeout: 300_000,
  }, async t => {
    const { cwd, path, copy, backUp, restore, signUp } = await listed(t, 'ada')
    const [before, after] = [20_000, 10_000]
    const add = (first: number, last: number) =>
      withDatabase(path, database =>
        database.exec(
          'insert into contact (id, name, email, email_key, state, created_at) with recursive n (i) as' +
            ` (select ${first} union all select i + 1 from n where i < ${last})` +
            " select format('%036d', i), 'Visitor', i || '@example.com', i || '@example.com', 'listed', 0 from n",
        ),
      )
    add(2, after)
    await backUp()
    add(after + 1, before)
    await backUp('original.db')
    const count = (file: string) =>
      withDatabase(file, database => {
        assert.equal(database.prepare('pragma integrity_check').get()?.integrity_check, 'ok')
        return Number(database.prepare('select count(*) as n from contact').get()?.n)
      })
    const source = new URL('../../src/store/sqlite/backup.ts', import.meta.url)
    const code = `import { restore } from ${JSON.stringify(source)}; process.stdout.write('go')
      await restore(${JSON.stringify(path)}, ${JSON.stringify(copy)})`
    const kills = isSlow ? 30 : 6
    for (let i = 0; i < kills; i++) {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: ['ignore', 'pipe', 2] })
      const exited = once(child, 'exit')
      await once(child.stdout!, 'data')
      await wait((400 * i) / kills)
      child.kill('SIGKILL')
      await exited
      const now = count(path)
      assert.ok(now === before || now === after, `${now}`)
      const folder = join(path, '..')
      const kept = readdirSync(folder).filter(name => /before-restore-[^.]*$/.test(name))
      if (now === after) assert.ok(kept.some(name => count(join(folder, name)) === before))
      for (const name of kept) rmSync(join(folder, name))
      if (now === before) continue
      for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
      copyFileSync(join(cwd, 'original.db'), path)
    }
    assert.equal((await restore()).code, 0)
    assert.equal(existsSync(`${path}.unfinished-restore`), false)
    await signUp('cyd')
    assert.equal(count(path), after + 1)
  })
})

import assert from 'node:assert/strict'
import { chownSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run as command } from '../harness/command.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { runProgram } from '../harness/program.ts'
import { operatorAt, storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'
import { scene } from './scene.ts'

const server = await sharedPostgres()

const run = (t: TestContext, cwd: string, args: string[], DATABASE_URL = `sqlite:${join(cwd, 'data/waitlist.db')}`) =>
  command(t, cwd, args, { DATABASE_URL })

describe('backup, restore, dump and load', { concurrency: true }, () => {
  test('beside a running service, backup copies everything that was acknowledged before', async t => {
    const cwd = temporaryFolder(t)
    const service = await runProgram(t, { PORT: '0', HOST: '127.0.0.1' }, { cwd })
    const signUp = async (email: string) => assert.equal((await visit(service, email))?.status, 200)
    for (let i = 0; i < 10; i++) await signUp(`v${i}@example.com`)
    const { code, stdout, stderr } = await run(t, cwd, ['backup', 'copy.db'])
    assert.match(stderr, /^copy\.db: 10 contacts, 1 MiB, checked\.\n$/)
    assert.deepEqual([code, stdout], [0, ''])
    await signUp('later@example.com')
    const copied = contactsIn(join(cwd, 'copy.db'))
    assert.deepEqual(
      copied.map(({ email, events }) => [email, events]),
      Array.from({ length: 10 }, (_, i) => [`v${i}@example.com`, 1]),
    )
    assert.deepEqual(contactsIn(join(cwd, 'data', 'waitlist.db')).slice(0, 10), copied)
  })

  test('a file that exists is never overwritten, and nothing is left of what fails', async t => {
    const { cwd } = await scene(t)
    writeFileSync(join(cwd, 'list.jsonl'), 'precious')
    const before = readdirSync(cwd)
    for (const [args, sentence] of [
      [['backup', 'list.jsonl'], /^waitlist: list\.jsonl exists already, and is never overwritten\.\n$/],
      [['dump', 'list.jsonl'], /^waitlist: list\.jsonl exists already, and is never overwritten\.\n$/],
      [['backup', join(cwd, 'no/copy.db')], /^waitlist: .*no\/copy\.db/],
      [['dump', join(cwd, 'no/list.jsonl')], /^waitlist: no\/list\.jsonl cannot be written: /],
    ] as const) {
      const { code, stdout, stderr } = await run(t, cwd, [...args])
      assert.deepEqual([code, stdout], [1, ''], args.join(' '))
      assert.match(stderr, sentence)
    }
    assert.deepEqual(readdirSync(cwd), before)
    assert.equal(readFileSync(join(cwd, 'list.jsonl'), 'utf8'), 'precious')
  })

  test('restore says what became of both, who is taken out, and what is in doubt', async t => {
    const cwd = temporaryFolder(t)
    const path = join(cwd, 'data', 'waitlist.db')
    const store = await storeAt(path, { destinations: ['webhook'] })
    for (const who of ['ada', 'bob']) await store.admit(signup(who, `${who}@example.com`))
    assert.equal((await run(t, cwd, ['backup', 'copy.db'])).code, 0)
    for (const who of ['cyd', 'dot', 'eve']) await store.admit(signup(who, `${who}@example.com`))
    await operatorAt(path).erase('ada@example.com')
    assert.match((await run(t, cwd, ['restore'])).stderr, /Name the backup/)
    const inUse = await run(t, cwd, ['restore', 'copy.db'])
    assert.equal(inUse.code, 1)
    assert.match(inUse.stderr, /^waitlist: \S+ is in use by another Waitlist process\./)
    await store.close()

    const { code, stdout, stderr } = await run(t, cwd, ['restore', 'copy.db'])
    assert.deepEqual([code, stderr], [0, ''])
    const kept = /^What was there before is kept: (\S+)$/m.exec(stdout)?.[1] ?? ''
    assert.deepEqual(stdout.split('\n'), [
      'copy.db is the database now: 1 contact.',
      'Taken out, since they were erased after it was made: 1 contact.',
      'In doubt, since they may have arrived after it was made: 1 waiting delivery.',
      `What was there before is kept: ${kept}`,
      '',
    ])
    assert.deepEqual(
      contactsIn(path).map(({ email }) => email),
      ['bob@example.com'],
    )
    assert.equal(contactsIn(join(cwd, kept)).length, 4)
  })

  test('restored by root, the list belongs to whom it belonged to, or on a new machine to the owner of its folder', {
    skip: process.geteuid?.() !== 0 && 'only root can give files away',
  }, async t => {
    const cwd = temporaryFolder(t)
    const folder = join(cwd, 'data')
    const path = join(folder, 'waitlist.db')
    await (await storeAt(path)).close()
    assert.equal((await run(t, cwd, ['backup', 'copy.db'])).code, 0)
    const [service, group] = [65_533, 65_534]
    for (const each of [folder, path, `${path}-lock`]) chownSync(each, service, group)
    for (const isNew of [false, true]) {
      if (isNew) for (const ending of ['', '-lock']) rmSync(path + ending)
      assert.equal((await run(t, cwd, ['restore', 'copy.db'])).code, 0)
      for (const ending of ['', '-lock']) {
        const { uid, gid, mode } = statSync(path + ending)
        assert.deepEqual([uid, gid, mode & 0o777], [service, group, 0o600], `new: ${isNew}, ${ending}`)
      }
    }
  })

  test('a dump goes from SQLite beside a service to PostgreSQL, once, and back: the same bytes', async t => {
    const { cwd } = await scene(t)
    const url = await server.database()
    const first = await run(t, cwd, ['dump', 'first.jsonl'])
    assert.deepEqual([first.code, first.stdout], [0, ''])
    assert.match(first.stderr, /^first\.jsonl: contact 3, delivery 3, /)
    const loaded = await run(t, cwd, ['load', 'first.jsonl'], url)
    assert.deepEqual([loaded.code, loaded.stderr], [0, ''])
    assert.match(loaded.stdout, /^first\.jsonl is loaded: contact 3, delivery 3, /)
    assert.equal((await run(t, cwd, ['dump', 'second.jsonl'], url)).code, 0)
    const again = await run(t, cwd, ['load', 'first.jsonl'], url)
    assert.deepEqual([again.code, again.stdout], [1, ''])
    assert.match(again.stderr, /^waitlist: postgres:\/\/.* is not empty\./)
    assert.match((await run(t, cwd, ['load', 'first.jsonl'])).stderr, /^waitlist: \S+ is in use by another Waitlist/)

    const back = `sqlite:${join(cwd, 'back.db')}`
    assert.match((await run(t, cwd, ['load', 'none.jsonl'], back)).stderr, /^waitlist: none\.jsonl cannot be read: /)
    assert.equal((await run(t, cwd, ['load', 'second.jsonl'], back)).code, 0)
    assert.equal((await run(t, cwd, ['dump', 'third.jsonl'], back)).code, 0)
    const [one, ...others] = ['first', 'second', 'third'].map(name => readFileSync(join(cwd, `${name}.jsonl`), 'utf8'))
    for (const each of others) assert.equal(each, one)
  })
})

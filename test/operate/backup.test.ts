import assert from 'node:assert/strict'
import { chownSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run as command } from '../harness/command.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { runProgram } from '../harness/program.ts'
import { operatorAt, storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const backUp = (t: TestContext, cwd: string, target = 'copy.db') => command(t, cwd, ['backup', target])

async function listed(t: TestContext, emails: readonly string[]): Promise<string> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await storeAt(path)
  await Promise.all(emails.map(email => store.admit(signup('Visitor', email))))
  await store.close()
  return cwd
}

describe('waitlist backup', { concurrency: true }, () => {
  test('beside a running service it copies everything that was acknowledged before', async t => {
    const cwd = temporaryFolder(t)
    const service = await runProgram(t, { PORT: '0', HOST: '127.0.0.1' }, { cwd })
    const signUp = async (email: string) => assert.equal((await visit(service, email))?.status, 200)
    for (let i = 0; i < 10; i++) await signUp(`v${i}@example.com`)
    const { code, stdout, stderr } = await backUp(t, cwd)
    assert.match(stderr, /^copy\.db: 10 contacts, 1 MiB, checked\.\n$/)
    assert.deepEqual([code, stdout], [0, ''], 'a copy may be on its way there')
    await signUp('later@example.com')
    const copied = contactsIn(join(cwd, 'copy.db'))
    assert.deepEqual(
      copied.map(({ email, events }) => [email, events]),
      Array.from({ length: 10 }, (_, i) => [`v${i}@example.com`, 1]),
    )
    assert.deepEqual(contactsIn(join(cwd, 'data', 'waitlist.db')).slice(0, 10), copied)
  })

  test('a file that exists is never overwritten', async t => {
    const cwd = await listed(t, ['ada@example.com'])
    writeFileSync(join(cwd, 'copy.db'), 'precious')
    const { code, stderr } = await backUp(t, cwd)
    assert.equal(code, 1)
    assert.match(stderr, /copy\.db exists already/)
    assert.equal(readFileSync(join(cwd, 'copy.db'), 'utf8'), 'precious')
  })

  test('what cannot be done is told in words, and leaves nothing behind', async t => {
    const empty = temporaryFolder(t)
    const missing = await backUp(t, empty)
    assert.match(missing.stderr, /There is no database at /)
    assert.deepEqual(readdirSync(empty), [])

    const cwd = await listed(t, ['ada@example.com'])
    const nowhere = await backUp(t, cwd, 'no/such/folder/copy.db')
    assert.match(nowhere.stderr, /^waitlist: .*no\/such\/folder/)

    const damaged = await listed(
      t,
      Array.from({ length: 2_000 }, (_, i) => `visitor-${i}@example.com`),
    )
    const path = join(damaged, 'data', 'waitlist.db')
    withDatabase(path, database => database.exec('pragma wal_checkpoint(truncate)'))
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xa5, 8_192, bytes.length - 8_192))
    const torn = await backUp(t, damaged)
    assert.match(torn.stderr, /^waitlist: .*(malformed|damaged)/)
    assert.deepEqual(readdirSync(damaged), ['data'])

    for (const { code, stdout, stderr } of [missing, nowhere, torn]) {
      assert.equal(code, 1)
      assert.equal(stdout, '')
      assert.doesNotMatch(stderr, /\n\s+at /, 'no stack')
    }
  })
})

const run = (t: TestContext, cwd: string, ...args: string[]) => command(t, cwd, args)

describe('waitlist restore', { concurrency: true }, () => {
  test('says what became of both, who is taken out, and what is in doubt', async t => {
    const cwd = temporaryFolder(t)
    const path = join(cwd, 'data', 'waitlist.db')
    const store = await storeAt(path, { destinations: ['webhook'] })
    for (const who of ['ada', 'bob']) await store.admit(signup(who, `${who}@example.com`))
    assert.equal((await run(t, cwd, 'backup', 'copy.db')).code, 0)
    for (const who of ['cyd', 'dot', 'eve']) await store.admit(signup(who, `${who}@example.com`))
    await operatorAt(path).erase('ada@example.com')
    const inUse = await run(t, cwd, 'restore', 'copy.db')
    assert.equal(inUse.code, 1)
    assert.match(inUse.stderr, /^waitlist: \S+ is in use by another Waitlist process\./)
    await store.close()

    const { code, stdout, stderr } = await run(t, cwd, 'restore', 'copy.db')
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

  test('by root, the list belongs to whom it belonged to, or on a new machine to the owner of its folder', {
    skip: process.geteuid?.() !== 0 && 'only root can give files away',
  }, async t => {
    const cwd = temporaryFolder(t)
    const folder = join(cwd, 'data')
    const path = join(folder, 'waitlist.db')
    const store = await storeAt(path)
    await store.close()
    assert.equal((await run(t, cwd, 'backup', 'copy.db')).code, 0)
    const [service, group] = [65_533, 65_534]
    for (const each of [folder, path, `${path}-lock`]) chownSync(each, service, group)
    for (const isNew of [false, true]) {
      if (isNew) for (const ending of ['', '-lock']) rmSync(path + ending)
      assert.equal((await run(t, cwd, 'restore', 'copy.db')).code, 0)
      for (const ending of ['', '-lock']) {
        const { uid, gid, mode } = statSync(path + ending)
        assert.deepEqual([uid, gid, mode & 0o777], [service, group, 0o600], `new: ${isNew}, ${ending}`)
      }
    }
  })

  test('without a file there is nothing to restore', async t => {
    const { code, stdout, stderr } = await run(t, temporaryFolder(t), 'restore')
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /Name the backup/)
  })
})

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { runCommand, runProgram } from '../harness/program.ts'

const backUp = (t: TestContext, cwd: string, target = 'copy.db') => runCommand(t, cwd, ['backup', target])

async function listed(t: TestContext, emails: readonly string[]): Promise<string> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
  await Promise.all(emails.map(email => store.admit(signup('Visitor', email))))
  await store.close()
  return cwd
}

describe('waitlist backup', { concurrency: true, timeout: 60_000 }, () => {
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

  test('a copy is a database that the service starts with', async t => {
    const cwd = await listed(t, ['ada@example.com'])
    assert.equal((await backUp(t, cwd)).code, 0)
    const store = await sqliteStore({ path: join(cwd, 'copy.db'), eventName: 'waitlist.joined', minimumFree: 0 })
    t.after(() => store.close())
    assert.deepEqual(await store.admit(signup('Ada', 'ADA@example.com')), { is: 'already listed' })
    assert.equal((await store.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
  })

  test('a file that exists is never overwritten', async t => {
    const cwd = await listed(t, ['ada@example.com'])
    writeFileSync(join(cwd, 'copy.db'), 'precious')
    const { code, stderr } = await backUp(t, cwd)
    assert.equal(code, 1)
    assert.match(stderr, /copy\.db exists already/)
    assert.equal(readFileSync(join(cwd, 'copy.db'), 'utf8'), 'precious')
  })

  test('a backup that is being made is left alone by another one', async t => {
    const cwd = await listed(t, ['ada@example.com'])
    const others = [`other.db.unfinished-backup-${process.pid}`, 'notes.unfinished-1', 'a.db.unfinished-move']
    for (const name of others) writeFileSync(join(cwd, name), '')
    assert.equal((await backUp(t, cwd)).code, 0)
    assert.deepEqual(readdirSync(cwd).sort(), [...others, 'copy.db', 'data'].sort())
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

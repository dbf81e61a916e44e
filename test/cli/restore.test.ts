import assert from 'node:assert/strict'
import { chownSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runCommand } from '../harness/program.ts'

const run = (t: TestContext, cwd: string, ...args: string[]) => runCommand(t, cwd, args)

describe('waitlist restore', { concurrency: true, timeout: 60_000 }, () => {
  test('says what became of both, who is taken out, what is in doubt, and how to bring back who is missing', async t => {
    const cwd = temporaryFolder(t)
    const path = join(cwd, 'data', 'waitlist.db')
    const store = await sqliteStore({ path, eventName: 'waitlist.joined', destinations: ['webhook'], minimumFree: 0 })
    for (const who of ['ada', 'bob']) await store.admit(signup(who, `${who}@example.com`))
    assert.equal((await run(t, cwd, 'backup', 'copy.db')).code, 0)
    for (const who of ['cyd', 'dot', 'eve']) await store.admit(signup(who, `${who}@example.com`))
    await sqliteOperator(path).erase('ada@example.com')
    const inUse = await run(t, cwd, 'restore', 'copy.db')
    assert.equal(inUse.code, 1)
    assert.match(inUse.stderr, /^waitlist: \S+ is in use by another Waitlist process\./)
    await store.close()

    const { code, stdout, stderr } = await run(t, cwd, 'restore', 'copy.db')
    assert.deepEqual([code, stderr], [0, ''])
    const kept = /^What was there before is kept: (\S+)$/m.exec(stdout)?.[1] ?? ''
    assert.deepEqual(stdout.split('\n'), [
      'copy.db is the database now: 1 contact; there were 4 before.',
      'Taken out, since they were erased after it was made: 1 contact.',
      'In doubt, since they may have arrived after it was made: 1 waiting delivery.',
      `What was there before is kept: ${kept}`,
      'Only there: 3 contacts. To bring them back:',
      `  DATABASE_URL=sqlite:${kept} npm run -s waitlist -- export --format json | npm run -s waitlist -- import -`,
      '',
    ])
    assert.deepEqual(
      contactsIn(path).map(({ email }) => email),
      ['bob@example.com'],
    )
    assert.equal(contactsIn(kept).length, 4)
  })

  test('by root, the list belongs to whom it belonged to, or on a new machine to the owner of its folder', {
    skip: process.geteuid?.() !== 0 && 'only root can give files away',
  }, async t => {
    const cwd = temporaryFolder(t)
    const folder = join(cwd, 'data')
    const path = join(folder, 'waitlist.db')
    const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
    await store.close()
    assert.equal((await run(t, cwd, 'backup', 'copy.db')).code, 0)
    const [service, group] = [65_533, 65_534]
    for (const each of [folder, path]) chownSync(each, service, group)
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
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /Name the backup/)
  })
})

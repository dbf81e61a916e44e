import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteMovable } from '../../src/stores/sqlite/movable.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram } from '../harness/program.ts'

/** The process that runs this file takes nothing away from the modes that it asks for. */
process.umask(0)

const PRIVATE = 0o600

/** The mode of each file in a folder. */
const modesIn = (folder: string): Record<string, number> =>
  Object.fromEntries(readdirSync(folder).map(name => [name, statSync(join(folder, name)).mode & 0o777]))

const all = (...names: string[]) => Object.fromEntries(names.sort().map(name => [name, PRIVATE]))

/** A folder that existed before, open to everybody. */
function sharedFolder(t: TestContext): string {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o777)
  return folder
}

async function open(t: TestContext, path: string) {
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
  t.after(() => store.close())
  return store
}

const running = ['waitlist.db', 'waitlist.db-lock', 'waitlist.db-shm', 'waitlist.db-wal']
const env = { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', DATABASE_URL: 'sqlite:waitlist.db' }

/** Why files of another user cannot be made here. */
const otherUser = process.getuid?.() !== 0 ? 'only root can run a program as another user' : false

describe('with a umask of 000, in a folder for everybody, only this user can read', () => {
  test('the database, also if it was made empty before, its log, the index of the log and the lock', async t => {
    const folder = sharedFolder(t)
    writeFileSync(join(folder, 'waitlist.db'), '')
    const store = await open(t, join(folder, 'waitlist.db'))
    await store.admit(signup('Ada', 'ada@example.com'))
    assert.deepEqual(modesIn(folder), all(...running))
  })

  test('what a process that was killed has left, and others could read', async t => {
    const cwd = sharedFolder(t)
    const program = await runProgram(t, env, { cwd })
    await program.end('SIGKILL')
    assert.deepEqual(Object.keys(modesIn(cwd)), running)
    for (const name of running) chmodSync(join(cwd, name), 0o666)
    await runProgram(t, env, { cwd })
    assert.deepEqual(modesIn(cwd), all(...running))
  })

  test('a backup', async t => {
    const folder = sharedFolder(t)
    const path = join(folder, 'waitlist.db')
    await open(t, path)
    await sqliteOperator(path).backUp(join(folder, 'copy.db'))
    assert.deepEqual(modesIn(folder), all('copy.db', ...running))
  })

  test('what a move writes, and the lock that it holds', async t => {
    const folder = sharedFolder(t)
    const target = await sqliteMovable(join(folder, 'target.db')).openTarget()
    await target.begin()
    assert.deepEqual(modesIn(folder), all('target.db-lock', 'target.db.unfinished-move'))
    await target.finish({ contact: 0, delivery: 0, erased: 0, secret: 0 })
    await target.commit()
    assert.deepEqual(modesIn(folder), all('target.db', 'target.db-lock'))
    await target.close()
  })
})

test('a file of another user that others can read stays as it is, and is warned of', { skip: otherUser }, async t => {
  const cwd = sharedFolder(t)
  const path = join(cwd, 'waitlist.db')
  await (await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })).close()
  const nobody = 65_534
  const through = ['setpriv', '--reuid', String(nobody), '--clear-groups']
  const [command, ...args] = [
    ...through,
    process.execPath,
    '--check',
    fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url)),
  ]
  if (spawnSync(command!, args).status !== 0) return t.skip('no program can be run as another user')
  chmodSync(path, 0o666)
  chownSync(join(cwd, 'waitlist.db-lock'), nobody, nobody)
  const program = await runProgram(t, env, { cwd, through })
  const warnings = logOf(program).filter(({ msg }) => String(msg).startsWith('other users may read the list'))
  assert.deepEqual(
    warnings.map(({ file, mode }) => [file, mode]),
    [[path, '666']],
  )
  assert.equal(statSync(path).mode & 0o777, 0o666)
})

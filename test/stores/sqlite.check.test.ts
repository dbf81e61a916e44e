import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { linux, root } from '../../torture/needs.ts'
import { signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { spawnProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { openStore } from './sqlite.stage.ts'

test('a check fails where a signup would: in a full file, at once after the first refusal', async t => {
  const { store, path } = await openStore(t)
  await store.check()
  withDatabase(path, database => database.exec('create table bulk (content blob)'))
  await store.close()
  const pages = withDatabase(path, database => database.prepare('pragma page_count').get()?.page_count as number)
  const full = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0, maxPages: pages })
  t.after(() => full.close())
  for (let i = 0; ; i++) {
    const refused = await full.admit(signup('V'.repeat(100), `visitor-${i}@example.com`)).catch(error => error)
    if (refused instanceof StoreUnavailable) break
  }
  await assert.rejects(full.check(), StoreUnavailable)
})

/** What runs a program as another user; undefined: that is not possible here, and the test is skipped. */
function asNobody(t: TestContext): readonly string[] | undefined {
  const through = ['setpriv', '--reuid', '65534', '--clear-groups']
  const program = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
  const [command, ...args] = [...through, process.execPath, '--check', program]
  if (process.getuid?.() === 0 && spawnSync(command!, args).status === 0) return through
  t.skip('only root can run a program as another user, if that one may read it')
  return undefined
}

test('waitlist check says that a file is on a file system that is read-only', { skip: linux() || root() }, async t => {
  const cwd = temporaryFolder(t)
  const data = join(cwd, 'data')
  // In use, so that all its files are there: without them it could not even be read.
  const store = await sqliteStore({ path: join(data, 'waitlist.db'), eventName: 'waitlist.joined', minimumFree: 0 })
  t.after(() => store.close())
  const mount = 'mount --bind data data && mount -o remount,bind,ro data && exec "$@"'
  const check = spawnProgram(t, {}, { cwd, args: ['check'], through: ['unshare', '--mount', 'sh', '-c', mount, 'sh'] })
  assert.equal(await check.exited, 1)
  assert.ok(check.stdout().includes(`${data} is on a file system that is read-only.`), check.stdout())
})

test('a file or folder that may not be written is named, with its owner, by the service and by commands', async t => {
  const through = asNobody(t)
  if (through === undefined) return
  const cwd = temporaryFolder(t)
  const data = join(cwd, 'data')
  const path = join(data, 'waitlist.db')
  const told = async (...args: string[]) => {
    const program = spawnProgram(t, { HOST: '127.0.0.1', PORT: '0' }, { cwd, args, through })
    assert.equal(await program.exited, 1)
    assert.doesNotMatch(program.stderr(), /\n\s+at /)
    return args[0] === 'check' ? program.stdout() : program.stderr()
  }
  const lacking = (place: string) => `this user (uid 65534) may not write ${place}, which belongs to uid 0.`
  chmodSync(cwd, 0o755)
  for (const command of ['serve', 'check']) {
    assert.ok((await told(command)).includes(lacking(`in the folder ${cwd}`)), command)
  }
  await (await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })).close()
  chmodSync(path, 0o444)
  chmodSync(`${path}-lock`, 0o666)
  chmodSync(data, 0o555)
  // SQLite says of it only "unable to open database file", or that it is read-only.
  for (const args of isSlow
    ? [['serve'], ['check'], ['remove', '--yes', 'ada@example.com'], ['export']]
    : [['serve'], ['export']]) {
    assert.ok((await told(...args)).includes(lacking(`in the folder ${data}`)), args.join(' '))
  }
  chmodSync(data, 0o777)
  assert.ok((await told('serve')).includes(lacking(`the file ${path}`)))
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../../src/config/operator.ts'
import { openDatabase } from '../../src/store/open.ts'
import { backUp } from '../../src/store/sqlite/backup.ts'
import { whyEphemeral } from '../../src/store/sqlite/files.ts'
import { openForService } from '../../src/store/sqlite/open.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { recordingLog } from '../harness/log.ts'
import { logOf, runProgram, spawnProgram } from '../harness/program.ts'

/** The process that runs this file takes nothing away from the modes that it asks for. */
process.umask(0)

const { log } = recordingLog()
const newFile = (t: TestContext) => join(temporaryFolder(t), 'waitlist.db')

async function open(t: TestContext, path: string) {
  const database = await openDatabase({ kind: 'sqlite', path }, log)
  t.after(database.close)
  return database
}

const pragma = (database: DatabaseSync, name: string) =>
  Object.values(database.prepare(`pragma ${name}`).get() as Record<string, unknown>)[0]

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OperatorError, String(error))
  assert.match(error.message, sentence)
  return true
}

const env = { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', DATABASE_URL: 'sqlite:waitlist.db' }

describe('opening a SQLite file', { concurrency: true }, () => {
  test('the connection that writes has every setting of the design', t => {
    const { database, close } = openForService(newFile(t), log)
    t.after(close)
    const expected = {
      journal_mode: 'wal',
      synchronous: 1,
      busy_timeout: 0,
      foreign_keys: 1,
      trusted_schema: 0,
      secure_delete: 1,
      mmap_size: 0,
      wal_autocheckpoint: 0,
      journal_size_limit: 67_108_864,
    }
    for (const [name, value] of Object.entries(expected)) assert.equal(pragma(database, name), value, name)
  })

  test('from nothing: the folder data for this user alone, the mark, and the schema', async t => {
    const path = join(temporaryFolder(t), 'data', 'waitlist.db')
    await open(t, path)
    assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
    withDatabase(path, database => {
      assert.equal(pragma(database, 'application_id'), 0x77616974)
      assert.equal(pragma(database, 'user_version'), 1)
    })
  })

  test('two names of one file have one lock', async t => {
    const path = newFile(t)
    const first = await open(t, path)
    const link = join(temporaryFolder(t), 'link.db')
    symlinkSync(path, link)
    await assert.rejects(open(t, link), refused(/is in use by another Waitlist process/))
    await first.close()
    await open(t, link)
    assert.ok(existsSync(`${path}-wal`))
  })

  test('what is not ours is refused in a sentence, and not touched', async t => {
    const folder = temporaryFolder(t)
    const path = join(folder, 'waitlist.db')
    const cases: readonly [make: () => void, sentence: RegExp][] = [
      [() => writeFileSync(path, 'name,email\n'.repeat(1_000)), /cannot be used: .*not a database/],
      [
        () => withDatabase(path, database => database.exec('create table invoice (number integer primary key)')),
        /is a database of another program/,
      ],
      [
        () =>
          withDatabase(path, database =>
            database.exec(`create table later (x); pragma application_id = ${0x77616974}; pragma user_version = 2`),
          ),
        /written by a newer Waitlist .*version 2, this program knows 1/,
      ],
      [() => writeFileSync(`${path}-wal`, 'left'), /is empty, but it has a log/],
    ]
    for (const [make, sentence] of cases) {
      writeFileSync(path, '')
      make()
      const before = readFileSync(path)
      await assert.rejects(open(t, path), refused(sentence))
      assert.ok(readFileSync(path).equals(before), String(sentence))
    }
  })

  test('a folder in the place of the file, and one that cannot be made, are named', async t => {
    const folder = temporaryFolder(t)
    await assert.rejects(open(t, folder), refused(/is a folder\. Give the path of a file, such as .*waitlist\.db/))
    writeFileSync(join(folder, 'data'), '')
    await assert.rejects(open(t, join(folder, 'data', 'waitlist.db')), refused(/waitlist\.db cannot be used: E/))
  })

  test('while somebody reads the log of an earlier process, it is not known to be on disk: the start is refused', async t => {
    const path = newFile(t)
    await (await open(t, path)).close()
    const other = new DatabaseSync(path)
    t.after(() => other.close())
    other.exec("pragma wal_autocheckpoint = 0; insert into secret (name, value) values ('a', 'b'); begin")
    other.prepare('select * from secret').all()
    await assert.rejects(open(t, path), refused(/has it open\. End that first/))
    other.exec('rollback')
    await open(t, path)
    assert.equal(statSync(`${path}-wal`).size, 0)
  })

  test('a second process is refused in words; however the first ends, its file is free again', async t => {
    const cwd = temporaryFolder(t)
    const first = await runProgram(t, env, { cwd })
    const second = spawnProgram(t, env, { cwd })
    assert.equal(await second.exited, 1)
    assert.match(second.stderr(), /waitlist\.db is in use by another Waitlist process\. Stop that one first/)
    assert.doesNotMatch(second.stderr(), /\n\s+at /, 'no stack')
    assert.equal((await fetch(`${first.baseUrl}/api/health`)).status, 200)
    await first.end('SIGKILL')
    await runProgram(t, env, { cwd })
  })

  test('a place in memory is called one', () => {
    if (existsSync('/dev/shm')) assert.match(whyEphemeral('/dev/shm/waitlist.db')!, /kept in memory/)
  })
})

const PRIVATE = 0o600
const modesIn = (folder: string): Record<string, number> =>
  Object.fromEntries(readdirSync(folder).map(name => [name, statSync(join(folder, name)).mode & 0o777]))
const all = (...names: string[]) => Object.fromEntries(names.sort().map(name => [name, PRIVATE]))
const running = ['waitlist.db', 'waitlist.db-lock', 'waitlist.db-shm', 'waitlist.db-wal']

/** What runs a program as another user; undefined: that is not possible here, and the test is skipped. */
function asNobody(t: TestContext): readonly string[] | undefined {
  const through = ['setpriv', '--reuid', '65534', '--clear-groups']
  const program = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
  const [command, ...args] = [...through, process.execPath, '--check', program]
  if (process.getuid?.() === 0 && spawnSync(command!, args).status === 0) return through
  t.skip('only root can run a program as another user, if that one may read it')
  return undefined
}

describe('in a folder for everybody', () => {
  test('only this user can read the database, its log, its lock and a backup', async t => {
    const folder = temporaryFolder(t)
    chmodSync(folder, 0o777)
    const path = join(folder, 'waitlist.db')
    writeFileSync(path, '')
    await open(t, path)
    await backUp(path, join(folder, 'copy.db'))
    assert.deepEqual(modesIn(folder), all('copy.db', ...running))
  })

  test('what a killed process has left is closed to others; a file of somebody else is warned of', async t => {
    const cwd = temporaryFolder(t)
    chmodSync(cwd, 0o777)
    await (await runProgram(t, env, { cwd })).end('SIGKILL')
    for (const name of running) chmodSync(join(cwd, name), 0o666)
    await (await runProgram(t, env, { cwd })).end('SIGTERM')
    assert.deepEqual(modesIn(cwd), all('waitlist.db', 'waitlist.db-lock'))
    const through = asNobody(t)
    if (through === undefined) return
    chmodSync(join(cwd, 'waitlist.db'), 0o666)
    chownSync(join(cwd, 'waitlist.db-lock'), 65_534, 65_534)
    const program = await runProgram(t, env, { cwd, through })
    assert.ok(logOf(program).some(({ msg }) => String(msg).startsWith('other users may read the list')))
  })

  test('what root makes belongs to the owner of the folder', t => {
    if (process.getuid?.() !== 0) return t.skip('it needs the rights of root')
    const folder = join(temporaryFolder(t), 'data')
    mkdirSync(folder)
    chownSync(folder, 65_534, 65_534)
    const { close } = openForService(join(folder, 'waitlist.db'), log)
    t.after(close)
    for (const name of running) assert.equal(statSync(join(folder, name)).uid, 65_534, name)
  })

  test('a file or folder that may not be written is named, with its owner', async t => {
    const through = asNobody(t)
    if (through === undefined) return
    const cwd = temporaryFolder(t)
    const data = join(cwd, 'data')
    const path = join(data, 'waitlist.db')
    const told = async (...args: string[]) => {
      const program = spawnProgram(t, { HOST: '127.0.0.1' }, { cwd, args, through })
      assert.equal(await program.exited, 1)
      assert.doesNotMatch(program.stderr(), /\n\s+at /)
      return program.stderr()
    }
    const lacking = (place: string) => `this user (uid 65534) may not write ${place}, which belongs to uid 0.`
    chmodSync(cwd, 0o755)
    assert.ok((await told('serve')).includes(lacking(cwd)))
    await (await openDatabase({ kind: 'sqlite', path }, log)).close()
    chmodSync(path, 0o444)
    chmodSync(`${path}-lock`, 0o666)
    chmodSync(data, 0o555)
    for (const command of ['serve', 'export']) assert.ok((await told(command)).includes(lacking(data)), command)
    chmodSync(data, 0o777)
    assert.ok((await told('serve')).includes(lacking(path)))
  })
})

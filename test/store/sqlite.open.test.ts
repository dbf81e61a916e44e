import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../../src/config/operator.ts'
import { openDatabase } from '../../src/store/open.ts'
import { openForService } from '../../src/store/sqlite/open.ts'
import { withDatabase } from '../harness/database.ts'
import { quickFolder, temporaryFolder } from '../harness/folder.ts'
import { recordingLog } from '../harness/log.ts'
import { runProgram, spawnProgram } from '../harness/program.ts'

const { log } = recordingLog()
const newFile = (t: TestContext) => join(temporaryFolder(t), 'waitlist.db')

async function open(t: TestContext, path: string) {
  const database = await openDatabase({ kind: 'sqlite', path }, log)
  t.after(database.close)
  return database
}

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OperatorError, String(error))
  assert.match(error.message, sentence)
  return true
}

const env = { HOST: '127.0.0.1', SHUTDOWN_DELAY: '0' }

describe('opening a SQLite file', { concurrency: true }, () => {
  test('the connection that writes has every setting that durability and privacy rest on', t => {
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
    for (const [name, value] of Object.entries(expected))
      assert.equal(Object.values(database.prepare(`pragma ${name}`).get()!)[0], value, name)
  })

  test('this Node.js has a SQLite without the bug that corrupts a log with two connections', () => {
    // https://sqlite.org/wal.html#walresetbug
    const { version } = withDatabase(
      ':memory:',
      database => database.prepare('select sqlite_version() as version').get()!,
    )
    const [major, minor] = String(version).split('.').map(Number)
    assert.ok(major! > 3 || minor! >= 52, String(version))
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

  const foreign: Readonly<Record<string, readonly [make: (path: string) => void, sentence: RegExp]>> = {
    'no database': [path => writeFileSync(path, 'name,email\n'.repeat(1_000)), /cannot be used: .*not a database/],
    'one of another program': [
      path => withDatabase(path, database => database.exec('create table invoice (number); pragma user_version = 1')),
      /was made by another program/,
    ],
    'one of another version': [
      path =>
        withDatabase(path, database =>
          database.exec(`create table later (x); pragma application_id = ${0x77616974}; pragma user_version = 2`),
        ),
      /or by another version of Waitlist/,
    ],
  }
  for (const [what, [make, sentence]] of Object.entries(foreign)) {
    test(`${what} is refused in a sentence, and not changed`, async t => {
      const path = newFile(t)
      make(path)
      const before = readFileSync(path)
      await assert.rejects(open(t, path), refused(sentence))
      assert.ok(readFileSync(path).equals(before))
    })
  }

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

  test('a folder that is gone with the machine is warned of', {
    skip: !existsSync('/dev/shm') && 'no folder here is known to be in memory',
  }, t => {
    const { log, logged } = recordingLog()
    openForService(join(quickFolder(t), 'waitlist.db'), log).close()
    assert.match(String(logged[0]?.msg), /^this folder is in memory/)
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
})

describe('in a folder for everybody', () => {
  test('only this user can read the database, its log, its lock and a backup', async t => {
    const cwd = temporaryFolder(t)
    chmodSync(cwd, 0o777)
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    await runProgram(t, env, { cwd, through })
    assert.equal(await spawnProgram(t, {}, { cwd, args: ['backup', 'copy.db'], through }).exited, 0)
    const modes = readdirSync(cwd, { recursive: true }).map(name => [name, statSync(join(cwd, `${name}`)).mode & 0o777])
    assert.deepEqual(Object.fromEntries(modes), {
      'copy.db': 0o600,
      data: 0o700,
      ...Object.fromEntries(['', '-lock', '-shm', '-wal'].map(ending => [`data/waitlist.db${ending}`, 0o600])),
    })
  })

  test('a file that may not be written is named, with the user who must be able to', async t => {
    const through = ['setpriv', '--reuid', '65534', '--clear-groups']
    const program = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
    const [command, ...args] = [...through, process.execPath, '--check', program]
    if (process.getuid?.() !== 0 || spawnSync(command!, args).status !== 0)
      return t.skip('only root can run a program as another user, if that one may read it')
    const cwd = temporaryFolder(t)
    chmodSync(cwd, 0o755)
    const path = join(cwd, 'waitlist.db')
    const serve = async () => {
      const served = spawnProgram(t, { ...env, DATABASE_URL: `sqlite:${path}` }, { cwd, args: ['serve'], through })
      assert.equal(await served.exited, 1)
      return served.stderr()
    }
    const sentence = `${path} cannot be used: unable to open database file (SQLite 14). User 65534 must be able to write it, and in ${cwd}\n`
    assert.ok((await serve()).endsWith(sentence))
    await (await openDatabase({ kind: 'sqlite', path }, log)).close()
    chmodSync(`${path}-lock`, 0o666)
    chmodSync(cwd, 0o777)
    assert.match(await serve(), /waitlist\.db cannot be used: .*User 65534 must be able to write it/)
  })
})

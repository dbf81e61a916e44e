import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runProgram, spawnProgram } from '../harness/program.ts'

const people: readonly (readonly [name: string, email: string])[] = [
  ['Ada Lovelace', 'Ada@Example.com'],
  ['Says "hi", twice', 'quote@example.com'],
  ['=HYPERLINK("http://evil.example")', 'formula@example.com'],
  ['+1', 'plus@example.com'],
  ['-1', 'minus@example.com'],
  ['@SUM(A1)', 'at@example.com'],
  ['नमस्ते 🦀', 'unicode@example.com'],
  ['Semi;colon', 'semi@example.com'],
]

/** A folder with `data/waitlist.db`, where the program looks by default. */
async function listed(t: TestContext, contacts: readonly (readonly [string, string])[] = people): Promise<string> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
  for (let i = 0; i < contacts.length; i += 2_000) {
    await Promise.all(contacts.slice(i, i + 2_000).map(([name, email]) => store.admit(signup(name, email))))
  }
  await store.close()
  return cwd
}

async function run(t: TestContext, cwd: string, args: string[] = ['export'], env: Record<string, string> = {}) {
  const program = spawnProgram(t, env, { cwd, args })
  const code = await program.exited
  return { code, stdout: program.stdout(), stderr: program.stderr() }
}

const id = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'

describe('waitlist export', { concurrency: true, timeout: 60_000 }, () => {
  test('csv is the default: quoted as RFC 4180 says, formulas made harmless, one contact a line', async t => {
    const { code, stdout, stderr } = await run(t, await listed(t))
    assert.equal(stderr, '')
    assert.equal(code, 0)
    const lines = stdout.split('\r\n')
    assert.equal(lines.pop(), '', 'the last line ends too')
    assert.equal(lines[0], 'id,name,email,state,createdAt')
    const names = [
      'Ada Lovelace,Ada@Example.com',
      '"Says ""hi"", twice",quote@example.com',
      `"'=HYPERLINK(""http://evil.example"")",formula@example.com`,
      "'+1,plus@example.com",
      "'-1,minus@example.com",
      "'@SUM(A1),at@example.com",
      'नमस्ते 🦀,unicode@example.com',
    ]
    for (const [i, name] of names.entries()) {
      assert.ok(lines[i + 1]!.includes(`,${name},listed,`), lines[i + 1]!)
      assert.match(lines[i + 1]!, new RegExp(`^${id},.*,listed,${time}$`))
    }
    assert.equal(lines.length, 1 + people.length)
  })

  test('json is exact: one object a line', async t => {
    const { code, stdout } = await run(t, await listed(t), ['export', '--format', 'json'])
    assert.equal(code, 0)
    const contacts = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, string>)
    assert.deepEqual(
      contacts.map(({ name, email }) => [name, email]),
      people,
    )
    for (const contact of contacts) {
      assert.deepEqual(Object.keys(contact), ['id', 'name', 'email', 'state', 'createdAt'])
      assert.match(contact.id!, new RegExp(`^${id}$`))
      assert.match(contact.createdAt!, new RegExp(`^${time}$`))
    }
  })

  test('it works beside a running service, and after that one was killed', async t => {
    const cwd = temporaryFolder(t)
    const service = await runProgram(t, { PORT: '0', HOST: '127.0.0.1' }, { cwd })
    const signUp = (email: string) =>
      fetch(`${service.baseUrl}/api/waitlist`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Ada', email }),
      })
    assert.equal((await signUp('one@example.com')).status, 200)
    assert.match((await run(t, cwd)).stdout, /one@example\.com/)
    assert.equal((await signUp('two@example.com')).status, 200)
    await service.end('SIGKILL')
    const { code, stdout } = await run(t, cwd, ['export', '-f', 'json'])
    assert.equal(code, 0)
    assert.match(stdout, /one@example\.com[\s\S]*two@example\.com/)
  })

  test('a database whose list is empty gives the heading alone', async t => {
    const cwd = await listed(t, [])
    assert.equal((await run(t, cwd)).stdout, 'id,name,email,state,createdAt\r\n')
    assert.equal((await run(t, cwd, ['export', '-f', 'json'])).stdout, '')
  })

  test('without a database it says so, fails, and makes none', async t => {
    const cwd = temporaryFolder(t)
    const { code, stdout, stderr } = await run(t, cwd)
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /There is no database at \.\/data\/waitlist\.db\. Set DATABASE_URL/)
    assert.doesNotMatch(stderr, /\n\s+at /)
    assert.equal(existsSync(join(cwd, 'data')), false)
  })

  test('a file that is no database, or one of another program, is refused in words', async t => {
    const cwd = temporaryFolder(t)
    writeFileSync(join(cwd, 'notes.txt'), 'nothing\n'.repeat(1_000))
    withDatabase(join(cwd, 'other.db'), database => database.exec('create table invoice (number integer)'))
    for (const file of ['notes.txt', 'other.db']) {
      const { code, stdout, stderr } = await run(t, cwd, ['export'], { DATABASE_URL: `sqlite:${file}` })
      assert.equal(code, 1)
      assert.doesNotMatch(stdout, /nothing/)
      assert.match(stderr, new RegExp(`^waitlist: .*${file}`))
      assert.doesNotMatch(stderr, /\n\s+at /, 'no stack')
    }
  })

  test('a format that does not exist is refused with those that do', async t => {
    const { code, stdout, stderr } = await run(t, temporaryFolder(t), ['export', '--format', 'xml'])
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /xml.*Allowed choices are csv, json/)
  })

  test('a reader that has enough (`| head`) is no failure', async t => {
    const cwd = await listed(
      t,
      Array.from({ length: 20_000 }, (_, i) => [`Visitor ${i}`, `visitor-${i}@example.com`] as const),
    )
    const entry = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
    const command = 'set -o pipefail; "$0" "$1" export | head -n 2'
    const shell = spawn('bash', ['-c', command, process.execPath, entry], { cwd })
    let stdout = ''
    let stderr = ''
    shell.stdout.setEncoding('utf8').on('data', chunk => {
      stdout += chunk
    })
    shell.stderr.setEncoding('utf8').on('data', chunk => {
      stderr += chunk
    })
    const [code] = await once(shell, 'close')
    assert.equal(stderr, '')
    assert.equal(code, 0)
    assert.equal(stdout.split('\r\n').length, 3)
  })
})

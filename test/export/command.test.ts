import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../harness/command.ts'
import { withDatabase } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { noTerminal, spawnOnTerminal, spawnProgram, until } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { addMany, id, scene } from '../operate/scene.ts'
import { signup } from '../store/place.ts'

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
  const store = await storeAt(path)
  for (const [name, email] of contacts) await store.admit(signup(name, email))
  await store.close()
  return cwd
}

const entry = new URL('../../bin/waitlist.js', import.meta.url)
/** How CSV begins: with a byte order mark, for Excel. */
const HEADING =
  '\uFEFFid,name,email,state,reason,createdAt,utm_source,utm_medium,utm_campaign,utm_term,utm_content,ref,invitedAt,code,redeemedAt,confirmedAt'
const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'

describe('waitlist export', { concurrency: true }, () => {
  test('csv is the default: quoted as RFC 4180 says, formulas made harmless, one contact a line', async t => {
    const cwd = await listed(t)
    const { code, stdout, stderr } = await run(t, cwd, ['export'])
    assert.equal(stderr, `${people.length} contacts.\n`)
    assert.equal(code, 0)
    const lines = stdout.split('\r\n')
    assert.equal(lines.pop(), '', 'the last line ends too')
    assert.equal(lines[0], HEADING)
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
      assert.ok(lines[i + 1]!.includes(`,${name},listed,,`), lines[i + 1]!)
      assert.match(lines[i + 1]!, new RegExp(`^${id},.*,listed,,${time},,,,,,,,,,$`))
    }
    assert.equal(lines.length, 1 + people.length)
  })

  test('json is exact: one object a line', async t => {
    const { code, stdout } = await run(t, await listed(t), ['export', '--json'])
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

  test('the filters say which; sources have columns of their own, and members in the JSON where they are known', async t => {
    const { cwd } = await scene(t)
    const csv = await run(t, cwd, ['export', '--source', 'news'])
    assert.equal(csv.code, 0)
    const [, cyd, ...more] = csv.stdout.split('\r\n')
    assert.match(cyd!, /,listed,,1970-01-01T00:00:00\.000Z,news,'=1\+1,,,,"x, ""y""",,,,$/)
    assert.deepEqual(more, [''])
    const json = await run(t, cwd, ['export', '--json', '--search', 'CYD@', '--until', '1970-01-02'])
    assert.deepEqual(JSON.parse(json.stdout).source, { utm_source: 'news', utm_medium: '=1+1', ref: 'x, "y"' })
    const nobody = await run(t, cwd, ['export', '--state', 'listed', '--search', 'bob'])
    assert.deepEqual([nobody.code, nobody.stdout], [0, `${HEADING}\r\n`])
  })

  test('without a database it says so, fails, and makes none', async t => {
    const cwd = temporaryFolder(t)
    const { code, stdout, stderr } = await run(t, cwd, ['export'])
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /There is no database at data\/waitlist\.db\. Set DATABASE_URL/)
    assert.doesNotMatch(stderr, /\n\s+at /)
    assert.equal(existsSync(join(cwd, 'data')), false)
  })

  test('a file that is no database, or one of another program, is refused in words', async t => {
    const cwd = temporaryFolder(t)
    writeFileSync(join(cwd, 'notes.txt'), 'nothing\n'.repeat(1_000))
    withDatabase(join(cwd, 'other.db'), database => database.exec('create table invoice (number integer)'))
    for (const file of ['notes.txt', 'other.db']) {
      const { code, stdout, stderr } = await run(t, cwd, ['export'], { DATABASE_URL: `sqlite:${join(cwd, file)}` })
      assert.equal(code, 1)
      assert.doesNotMatch(stdout, /nothing/)
      assert.match(stderr, new RegExp(`^waitlist: .*${file}`))
      assert.doesNotMatch(stderr, /\n\s+at /, 'no stack')
    }
  })

  test('--output: a file for this user alone, once it is complete; none is overwritten', async t => {
    const { cwd } = await scene(t)
    const { stdout } = await run(t, cwd, ['export'])
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    const program = spawnProgram(t, {}, { cwd, args: ['export', '--output', 'list.csv'], through })
    assert.equal(await program.exited, 0)
    assert.deepEqual([program.stdout(), program.stderr()], ['', 'list.csv: 3 contacts.\n'])
    assert.equal(readFileSync(join(cwd, 'list.csv'), 'utf8'), stdout)
    assert.equal(statSync(join(cwd, 'list.csv')).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(cwd).sort(), ['data', 'list.csv'])

    const again = await run(t, cwd, ['export', '-o', 'list.csv', '--json'])
    assert.deepEqual([again.code, again.stdout], [1, ''])
    assert.equal(again.stderr, 'waitlist: list.csv exists already, and is never overwritten.\n')
    assert.equal(readFileSync(join(cwd, 'list.csv'), 'utf8'), stdout)
    const nowhere = await run(t, cwd, ['export', '-o', join(cwd, 'no/such/folder/list.csv')])
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.stderr, /^waitlist: no\/such\/folder\/list\.csv cannot be written: /)
  })

  test('what a killed export leaves was never open to others, and goes with the next one', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { cwd } = await scene(t)
    addMany(cwd, 100_000)
    const left = () => readdirSync(cwd).filter(name => name.includes('unfinished'))
    const program = spawnProgram(t, {}, { cwd, args: ['export', '-o', 'list.csv'] })
    await until(() => left().length > 0)
    program.process.kill('SIGKILL')
    assert.equal(await program.exited, null)
    assert.equal(existsSync(join(cwd, 'list.csv')), false)
    assert.equal(statSync(join(cwd, left()[0]!)).mode & 0o777, 0o600)
    assert.equal((await run(t, cwd, ['export', '-o', 'list.csv'])).code, 0)
    assert.deepEqual(left(), [])
    assert.equal(readFileSync(join(cwd, 'list.csv'), 'utf8').split('\r\n').length, 1 + 100_000 + 3 + 1)
  })

  test('a reader that has enough (`| head`) is no failure', async t => {
    const cwd = await listed(t)
    addMany(cwd, 20_000)
    const command = 'set -o pipefail; "$0" "$1" export | head -n 2'
    const shell = spawn('bash', ['-c', command, process.execPath, fileURLToPath(entry)], { cwd })
    let stdout = ''
    let stderr = ''
    shell.stdout.setEncoding('utf8').on('data', chunk => {
      stdout += chunk
    })
    shell.stderr.setEncoding('utf8').on('data', chunk => {
      stderr += chunk
    })
    const [code] = await once(shell, 'close')
    assert.match(stderr, /^[\d,]+ contacts\.\n$/)
    assert.equal(code, 0)
    assert.equal(stdout.split('\r\n').length, 3)
  })
})

test('on a terminal, a name of a stranger controls nothing', { skip: noTerminal }, async t => {
  const cwd = await listed(t, [['Cyd \u202Eevil', 'cyd@example.com']])
  const exported = spawnOnTerminal(t, {}, { cwd, args: ['export'] })
  assert.equal(await exported.exited, 0)
  assert.match(exported.stdout(), /,Cyd evil,cyd@example\.com,/)
  assert.doesNotMatch(exported.stdout(), /\u202E/)
})

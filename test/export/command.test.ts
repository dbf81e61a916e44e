import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../harness/command.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { spawnProgram, until } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { addMany, id, scene } from '../operate/scene.ts'
import { signup } from '../store/place.ts'

/** Names and addresses, and how they are in the CSV. */
const people: readonly (readonly [name: string, email: string, csv: string])[] = [
  ['Ada Lovelace', 'Ada@Example.com', 'Ada Lovelace,Ada@Example.com'],
  ['Says "hi", twice', 'quote@example.com', '"Says ""hi"", twice",quote@example.com'],
  ['=SUM("x")', 'formula@example.com', `"'=SUM(""x"")",formula@example.com`],
  ['+1', 'plus@example.com', "'+1,plus@example.com"],
  ['-1', 'minus@example.com', "'-1,minus@example.com"],
  ['@SUM(A1)', 'at@example.com', "'@SUM(A1),at@example.com"],
  ['नमस्ते 🦀', 'unicode@example.com', 'नमस्ते 🦀,unicode@example.com'],
  ['Semi;colon', 'semi@example.com', '"Semi;colon",semi@example.com'],
]

/** A folder with `data/waitlist.db`, where the program looks by default. */
async function listed(t: TestContext): Promise<string> {
  const cwd = temporaryFolder(t)
  const store = await storeAt(join(cwd, 'data', 'waitlist.db'))
  for (const [name, email] of people) await store.admit(signup(name, email))
  await store.close()
  return cwd
}

/** How CSV begins: with a byte order mark, for Excel. */
const HEADING =
  '\uFEFFid,name,email,state,reason,createdAt,utm_source,utm_medium,utm_campaign,utm_term,utm_content,ref,invitedAt,code,redeemedAt,confirmedAt'
const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'

describe('waitlist export', { concurrency: true }, () => {
  test('csv is the default: quoted as RFC 4180 says, formulas made harmless; json is exact', async t => {
    const cwd = await listed(t)
    const { code, stdout, stderr } = await run(t, cwd, ['export'])
    assert.deepEqual([code, stderr], [0, '8 contacts (8 listed).\n'])
    const [heading, ...lines] = stdout.split('\r\n')
    assert.equal(lines.pop(), '', 'the last line ends too')
    assert.equal(heading, HEADING)
    assert.equal(lines.length, people.length)
    for (const [i, [, , csv]] of people.entries()) {
      assert.ok(lines[i]!.includes(`,${csv},listed,,`), lines[i]!)
      assert.match(lines[i]!, new RegExp(`^${id},.*,listed,,${time},,,,,,,,,,$`))
    }
    const json = await run(t, cwd, ['export', '--json'])
    const contacts = json.stdout.match(/.*\n/g)!.map(line => JSON.parse(line))
    assert.deepEqual(
      contacts.map(({ name, email }) => [name, email]),
      people.map(([name, email]) => [name, email]),
    )
    for (const contact of contacts) {
      assert.deepEqual(Object.keys(contact), ['id', 'name', 'email', 'state', 'createdAt'])
      assert.match(contact.createdAt, new RegExp(`^${time}$`))
    }
  })

  test('the filters say which; sources have columns of their own, and members in the JSON where they are known', async t => {
    const { cwd } = await scene(t)
    const csv = await run(t, cwd, ['export', '--source', 'news'])
    const [, cyd, ...more] = csv.stdout.split('\r\n')
    assert.match(cyd!, /,listed,,1970-01-01T00:00:00\.000Z,news,'=1\+1,,,,"x, ""y""",,,,$/)
    assert.deepEqual(more, [''])
    const json = await run(t, cwd, ['export', '--json', '--search', 'CYD@', '--until', '1970-01-02'])
    assert.deepEqual(JSON.parse(json.stdout).source, { utm_source: 'news', utm_medium: '=1+1', ref: 'x, "y"' })
    const nobody = await run(t, cwd, ['export', '--state', 'listed', '--search', 'bob'])
    assert.deepEqual(nobody, { code: 1, stdout: `${HEADING}\r\n`, stderr: 'waitlist: nothing was found.\n' })
  })

  test('--output: a file for this user alone, once it is complete; none is overwritten', async t => {
    const { cwd } = await scene(t)
    const { stdout } = await run(t, cwd, ['export'])
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    const program = spawnProgram(t, {}, { cwd, args: ['export', '--output', 'list.csv'], through })
    assert.equal(await program.exited, 0)
    assert.deepEqual([program.stdout(), program.stderr()], ['', 'list.csv: 3 contacts (2 listed, 1 pending).\n'])
    assert.equal(readFileSync(join(cwd, 'list.csv'), 'utf8'), stdout)
    assert.equal(statSync(join(cwd, 'list.csv')).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(cwd).sort(), ['data', 'list.csv'])
    const again = await run(t, cwd, ['export', '-o', 'list.csv', '--json'])
    assert.equal(again.stderr, 'waitlist: list.csv exists already, and is never overwritten.\n')
    assert.equal(readFileSync(join(cwd, 'list.csv'), 'utf8'), stdout)
    const nowhere = await run(t, cwd, ['export', '-o', join(cwd, 'no/such/folder/list.csv')])
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.stderr, /^waitlist: no\/such\/folder\/list\.csv cannot be written: /)
  })

  test('what a killed export leaves was never open to others, and the next one replaces it', {
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
    const entry = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
    const shell = spawn('bash', ['-c', 'set -o pipefail; "$0" "$1" export | head -n 2', process.execPath, entry], {
      cwd,
    })
    let stdout = ''
    shell.stdout.setEncoding('utf8').on('data', chunk => {
      stdout += chunk
    })
    const [code] = await once(shell, 'close')
    assert.equal(code, 0)
    assert.equal(stdout.split('\r\n').length, 3)
  })
})

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { textOf } from '../../src/cli/log-text.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { noTerminal, spawnOnTerminal, spawnProgram, until } from '../harness/program.ts'

const common = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0', TZ: 'UTC' }

describe('a line of the log as text', () => {
  const line = (members: object, level = 30) =>
    JSON.stringify({ level, time: '2026-11-22T09:30:01.234Z', pid: 7, hostname: 'here', ...members })
  const shown = (members: object, columns?: number) => {
    const text = textOf(line(members), { columns, colours: false })
    const { 0: time } = /^\d\d:\d\d:\d\d /.exec(text)!
    assert.equal(time, `${new Date('2026-11-22T09:30:01.234Z').toTimeString().slice(0, 8)} `)
    return text.slice(time.length)
  }

  test('has the level, the message, and the rest as key=value, quoted where it has to be', () => {
    const members = { msg: 'something is so', url: 'http://a.example', count: 3, ok: false, none: null, list: [1, 'b'] }
    assert.equal(
      shown({ ...members, why: 'it "is" so', empty: '', sum: '1=1' }),
      'info   something is so url=http://a.example count=3 ok=false none=null list=[1,"b"] why="it \\"is\\" so" empty="" sum="1=1"\n',
    )
    for (const [level, name] of [
      [20, 'debug'],
      [40, 'warn'],
      [50, 'error'],
      [60, 'fatal'],
      [35, '35'],
    ] as const) {
      const text = textOf(line({ msg: 'so' }, level), { colours: false })
      assert.equal(text.slice(9), `${name.padEnd(7)}so\n`)
    }
  })

  test('has the stack of an error below it, and what else is known of it', () => {
    const err = {
      type: 'Error',
      message: 'no',
      stack: 'Error: no\n    at here (a.ts:1)\n    at \u001b[31mthere',
      code: 'EIO',
    }
    assert.equal(
      shown({ msg: 'a bug', err }),
      `info   a bug code=EIO\n${['Error: no', 'at here (a.ts:1)', 'at [31mthere'].map(each => `${' '.repeat(16)}${each}\n`).join('')}`,
    )
  })

  test('controls neither the terminal nor the order of letters, whatever is in it', () => {
    const evil = '\u001b[2J\u009b31m\r\n\u0007\u202Eevil\u2066\u200F\u2028\u0000\u007F\ud800'
    const err = { type: evil, message: evil, stack: `Error: ${evil}\n at ${evil}`, [evil]: evil }
    const text = shown({ msg: evil, why: evil, [evil]: [evil, { [evil]: evil }], err })
    assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}/u)
    assert.match(text, /^info .*evil.*\n {16}Error: /)
    assert.ok(
      text
        .split('\n')
        .slice(1, -1)
        .every(each => each.startsWith(' '.repeat(16))),
    )
  })

  test('goes on in the next line, under the message, where the screen ends', () => {
    const members = {
      msg: 'a message of several words that needs more than a single line',
      why: 'so it is',
      url: 'x'.repeat(60),
    }
    const text = `12:34:56 ${shown(members, 60)}`
    assert.deepEqual(text.split('\n'), [
      '12:34:56 info   a message of several words that needs more',
      `${' '.repeat(16)}than a single line why="so it is"`,
      `${' '.repeat(16)}url=${'x'.repeat(60)}`,
      '',
    ])
    assert.equal(shown(members, 0).split('\n').length, 2, 'a terminal that does not say how wide it is')
    const wide = shown({ msg: '李'.repeat(20).replaceAll(/(..)/g, '$1 ') }, 60).split('\n')
    assert.equal(wide.length, 3, 'characters of two cells')
  })
})

const DATABASE_URL = 'sqlite::memory:'

/** What somebody sees who starts the service on a terminal, and stops it with Ctrl-C. */
async function seen(t: TestContext, env: Record<string, string> = {}): Promise<string> {
  // Some machines have folders in memory, of which the first line would speak.
  const settings = { DATABASE_URL, ...common, ...env }
  const { process, stdout, exited } = spawnOnTerminal(t, settings, { cwd: temporaryFolder(t), args: ['serve'] })
  await until(() => stdout().includes('Signups travel in the clear'))
  process.stdin!.write('\x03')
  assert.equal(await exited, 0, stdout())
  return stdout().replaceAll('\r\n', '\n')
}

describe('the log of a service', { concurrency: true, timeout: 60_000 }, () => {
  test('is text on a terminal: in colour, within its columns, and after the welcome', { skip: noTerminal }, async t => {
    const coloured = await seen(t)
    assert.match(coloured, /\x1b\[33mwarn/)
    const text = stripVTControlCharacters(coloured)
    assert.match(
      text,
      /^Waitlist is listening on .*\n\n\d\d:\d\d:\d\d info {3}waitlist is ready url=.*\n\d\d:\d\d:\d\d warn {3}Signups travel in the clear.*\d\d:\d\d:\d\d info {3}stopped\n$/s,
    )
    assert.doesNotMatch(text, /\{"level"/)
    const long = text.split('\n').filter(each => each.length > 80)
    assert.deepEqual(
      long.map(each => each.slice(0, 20)),
      ['  Sign somebody up: '],
      'a command is one line, so that it can be copied',
    )
  })

  test('has no colour there with NO_COLOR', { skip: noTerminal }, async t => {
    const text = await seen(t, { NO_COLOR: '1' })
    assert.match(text, /^\d\d:\d\d:\d\d info {3}waitlist is ready/m)
    assert.ok(!text.includes('\x1b'))
  })

  test('is text in a pipe if LOG_FORMAT says so: without colour, and in one line each', async t => {
    const program = spawnProgram(t, { ...common, LOG_FORMAT: 'text' }, { cwd: temporaryFolder(t), args: ['serve'] })
    await until(() => program.stderr().includes('listening on'))
    program.process.kill('SIGTERM')
    assert.equal(await program.exited, 0)
    const lines = program.stdout().split('\n')
    assert.equal(lines.pop(), '')
    for (const each of lines) assert.match(each, /^\d\d:\d\d:\d\d (info|warn) {3}\S/)
    assert.match(lines.at(-1)!, /stopped$/)
  })
})

const lines = new URL('../../src/cli/log.ts', import.meta.url).href
const COUNT = 30_000
/** Writes many lines, and another when it is told that there is room. */
const code = `
const { linesTo } = await import('${lines}')
const told = line => write(JSON.stringify(line).padEnd(80) + '\\n')
const { write, settled } = linesTo(1, dropped => told({ dropped }))
for (let i = 0; i < ${COUNT}; i++) told({ i })
await settled()
process.stderr.write('full')
process.stdin.once('data', () => told({})).once('end', () => process.exit(0))
`
const noLimits = spawnSync('prlimit', ['--version']).status !== 0 && 'it needs prlimit of util-linux'

test('lines wait for room, whole up to a bound, and then it is told how many were dropped', {
  skip: noLimits,
  timeout: 60_000,
}, async t => {
  const file = join(temporaryFolder(t), 'log')
  const run = [process.execPath, '--input-type=module', '-e', code]
  // 4 KiB at most, within a line.
  const limit = 'ulimit -S -f 8 && exec "$@" > "$0"'
  const child = spawn('sh', ['-c', limit, file, ...run], { stdio: ['pipe', 'ignore', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stderr, 'data')
  assert.equal(statSync(file).size, 4096)
  spawnSync('prlimit', [`--pid=${child.pid}`, '--fsize=unlimited'])
  child.stdin.write('.')
  const lines = () => readFileSync(file, 'utf8').split('\n').slice(0, -1)
  await until(() => /dropped/.test(lines().at(-1) ?? ''))
  child.stdin.end()
  assert.deepEqual(await once(child, 'close'), [0, null])

  const told = lines().map(line => JSON.parse(line) as { i?: number; dropped?: number })
  const kept = told.slice(0, -1).map(({ i }) => i)
  assert.deepEqual(kept, [...kept.keys()])
  assert.ok(statSync(file).size < 2_000_000)
  assert.equal(kept.length + told.at(-1)!.dropped!, COUNT + 1)
})

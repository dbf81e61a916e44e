import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Setting } from '../src/config/readers.ts'
import { settings } from '../src/config/settings.ts'
import { moment } from '../src/operate/arguments.ts'
import { run as command, commandsIn } from './harness/command.ts'
import { temporaryFolder } from './harness/folder.ts'
import { runCommand, runProgram, until } from './harness/program.ts'

const run = async (t: TestContext, args: string[], env: Record<string, string> = {}, cwd = temporaryFolder(t)) => ({
  cwd,
  ...(await command(t, cwd, args, env)),
})

describe('the command line', { concurrency: true }, () => {
  test('help fits a screen; that of serve has every setting with its default; --version says which it is', async t => {
    const { code, stdout } = await run(t, ['--help'])
    assert.equal(code, 0)
    assert.ok(stdout.split('\n').length <= 32)
    assert.match((await run(t, ['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
    const serve = (await run(t, ['help', 'serve'])).stdout
    for (const [name, { meaning, default: standard }] of Object.entries<Setting<unknown>>(settings)) {
      const line = serve.split('\n').find(each => each.trim().startsWith(`${name} `)) ?? ''
      assert.ok(line.includes(meaning), name)
      assert.ok(standard === undefined || line.includes(`[${standard}]`), name)
    }
  })

  const mistyped: readonly (readonly [args: string[], nearest: RegExp])[] = [
    [['sevre'], /Did you mean serve\?/],
    [['list', '--serch', 'ada'], /Did you mean --search\?/],
    [['--verbose'], /unknown option '--verbose'/],
    [['export', 'extra'], /too many arguments/],
    [['list', '--limit', '10001'], /At most 10,000; waitlist export has no limit/],
    [['show', 'ada'], /It must be an email address/],
    [['restore'], /Name the backup/],
    [['invite'], /Give addresses/],
    [['deliveries', 'replay'], /Give the numbers/],
    [['list', '--state', 'gone'], /Allowed choices are/],
  ]
  test('what is mistyped is refused with the nearest that there is, and no service starts', async t => {
    for (const [args, nearest] of mistyped) {
      const { code, stdout, stderr, cwd } = await run(t, args)
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
      assert.match(stderr, /^waitlist: /)
      assert.match(stderr, nearest)
      assert.equal(existsSync(join(cwd, 'data')), false)
    }
  })

  test('wrong settings end a command with the list of all mistakes on standard error', async t => {
    const { code, stdout, stderr, cwd } = await run(t, ['export'], { PORT: 'http', EVENT_NAME: 'se;cret' })
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^waitlist: the settings are not right:\n {2}- PORT .*\n {2}- EVENT_NAME .*\n$/)
    assert.doesNotMatch(stderr, /se;cret/)
    assert.equal(existsSync(join(cwd, 'data')), false)
  })

  test('a port that is in use is named, with what to do, and so is a host that is not of this machine', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const taken = await run(t, [], { HOST: '127.0.0.1', PORT: String(port) })
    assert.equal(taken.code, 1)
    assert.ok(taken.stderr.includes(`PORT ${port} on 127.0.0.1 is in use. Stop what uses it, or set another PORT`))
    const elsewhere = await run(t, [], { HOST: '192.0.2.1', PORT: '0' })
    assert.equal(elsewhere.code, 1)
    assert.match(elsewhere.stderr, /HOST 192\.0\.2\.1/)
  })

  test('each of the 16 commands has an example, which the command line understands', async t => {
    const commands = await commandsIn(t)
    assert.equal(commands.length, 16)
    for (const command of commands) {
      const { stdout } = await run(t, ['help', command])
      const [, ...args] = /^ {2}waitlist (.*)$/m.exec(stdout)?.[0].trim().split(' ') ?? []
      assert.equal(args[0], command)
      // With wrong settings each ends after its arguments were read, and before anything is done.
      const { code, stderr } = await run(t, args, { PORT: 'wrong' })
      assert.equal(code, 1, command)
      assert.match(stderr, /the settings are not right/, command)
    }
  })
})

test('.env is read; what the environment says goes before it, unless that is empty or of spaces', async t => {
  const cwd = temporaryFolder(t)
  const content = '\uFEFFHOST=127.0.0.1\r\nexport PORT=0\r\nSERVICE_NAME="Früh dabei"\r\nSERVICE_DESCRIPTION=file\r\n'
  writeFileSync(join(cwd, '.env'), content)
  const env = { SHUTDOWN_DELAY: '0', SERVICE_DESCRIPTION: 'environment', PORT: ' ', HOST: '' }
  const program = await runProgram(t, env, { cwd })
  const health = (await (await fetch(`${program.baseUrl}/api/health`)).json()) as Record<string, string>
  assert.deepEqual([health.service, health.description], ['Früh dabei', 'environment'])
  await until(() => /\nwith settings of \/.*\/\.env\n/.test(program.stderr()))
})

test('a .env that cannot be read ends the program', async t => {
  const cwd = temporaryFolder(t)
  mkdirSync(join(cwd, '.env'))
  const { code, stderr } = await runCommand(t, cwd, [], { PORT: '0' })
  assert.equal(code, 1)
  assert.match(stderr, /^waitlist: The file \/.*\/\.env cannot be read: EISDIR/)
})

test('a time is a date, a time in UTC or with an offset, or so long ago; a day that does not exist is none', () => {
  assert.equal(moment('2028-02-29').toISOString(), '2028-02-29T00:00:00.000Z')
  assert.equal(moment('2026-11-22T09:30').toISOString(), '2026-11-22T09:30:00.000Z')
  assert.equal(moment('2026-11-22T09:30:01.5+05:30').toISOString(), '2026-11-22T04:00:01.500Z')
  for (const text of ['24h', '1d']) assert.ok(Math.abs(Date.now() - 86_400_000 - moment(text).getTime()) < 60_000)
  for (const text of ['2026-02-31', '2027-02-29', '2026-06-31T09:30+02:00', '2026-11-22T25:00', 'yesterday', '']) {
    assert.throws(() => moment(text), /It must be a time such as/, text)
  }
})

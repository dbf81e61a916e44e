import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Setting } from '../../src/config/readers.ts'
import { settings } from '../../src/config/settings.ts'
import { moment } from '../../src/operate/arguments.ts'
import { run as command, commandsIn } from '../harness/command.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { complaintsIn, logOf, runCommand, runProgram, until } from '../harness/program.ts'

const run = async (t: TestContext, args: string[], env: Record<string, string> = {}, cwd = temporaryFolder(t)) => ({
  cwd,
  ...(await command(t, cwd, args, env)),
})

describe('the command line', { concurrency: true }, () => {
  test('help fits a screen; that of serve has every setting with its default; --version says which it is', async t => {
    const { code, stdout } = await run(t, ['--help'])
    assert.equal(code, 0)
    assert.ok(stdout.split('\n').length <= 40)
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
    [['imprt', 'list.csv'], /Did you mean import\?/],
    [['list', '--serch', 'ada'], /Did you mean --search\?/],
    [['--verbose'], /unknown option '--verbose'/],
    [['export', 'extra'], /too many arguments/],
  ]
  test('what is mistyped is refused with the nearest that there is, and no service starts', async t => {
    await Promise.all(
      mistyped.map(async ([args, nearest]) => {
        const { code, stdout, stderr, cwd } = await run(t, args)
        assert.deepEqual([code, stdout], [2, ''], args.join(' '))
        assert.match(stderr, /^waitlist: /)
        assert.match(stderr, nearest)
        assert.equal(existsSync(join(cwd, 'data')), false)
      }),
    )
  })

  test('wrong settings end every command with the list of all mistakes on standard error', async t => {
    const env = { PORT: 'http', LOG_LEVEL: 'loud', TLS_CERT_FILE: 'cert.pem', EVENT_NAME: 'se;cret' }
    for (const args of [['export']]) {
      const { code, stdout, stderr, cwd } = await run(t, args, env)
      assert.equal(code, 1)
      assert.equal(stdout, '')
      const told = stderr.split('\n').filter(line => line.startsWith('  - '))
      assert.equal(told.length, 4)
      for (const name of ['PORT', 'LOG_LEVEL', 'TLS_KEY_FILE', 'EVENT_NAME']) {
        assert.ok(told.some(line => line.startsWith(`  - ${name} `)))
      }
      assert.doesNotMatch(stderr, /loud|se;cret/)
      assert.equal(existsSync(join(cwd, 'data')), false)
    }
  })

  test('a port that is in use is named, with what to do, and so is a host that is not of this machine', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { code, stderr } = await run(t, [], { HOST: '127.0.0.1', PORT: String(port) })
    assert.equal(code, 1)
    assert.match(
      stderr,
      new RegExp(`PORT ${port} on 127\\.0\\.0\\.1 is in use\\. Stop what uses it, or set another PORT`),
    )
    const elsewhere = await run(t, [], { HOST: '192.0.2.1', PORT: '0' })
    assert.equal(elsewhere.code, 1)
    assert.match(elsewhere.stderr, /HOST 192\.0\.2\.1/)
  })
})

describe('the file .env', { concurrency: true }, () => {
  const start = (t: TestContext, content: string, env: Record<string, string> = {}) => {
    const cwd = temporaryFolder(t)
    writeFileSync(join(cwd, '.env'), content)
    return runProgram(t, { SHUTDOWN_DELAY: '0', ...env }, { cwd })
  }
  test('is read; what the environment says goes before it, unless that is empty or of spaces', async t => {
    const content = '\uFEFFHOST=127.0.0.1\r\nexport PORT=0\r\nSERVICE_NAME="Früh dabei"\r\nSERVICE_DESCRIPTION=file\r\n'
    const program = await start(t, content, { SERVICE_DESCRIPTION: 'environment', PORT: ' ', HOST: '' })
    const health = (await (await fetch(`${program.baseUrl}/api/health`)).json()) as Record<string, string>
    assert.deepEqual([health.service, health.description], ['Früh dabei', 'environment'])
    await until(() => /\nwith settings of \/.*\/\.env\n/.test(program.stderr()))
    assert.equal(await program.end('SIGTERM'), 0)
  })

  test('names that begin like settings and are none are told in one warning, without their values', async t => {
    const program = await start(t, 'HOST=127.0.0.1\nPORT=0\nRATE_LIMITS=hunter2\nOTHER=1\n', {
      LOOPS_API_KEY: 'hunter2',
    })
    await program.end('SIGTERM')
    const warnings = complaintsIn(logOf(program)).map(({ msg }) => String(msg))
    assert.deepEqual(
      warnings.filter(warning => /RATE_LIMITS|LOOPS_API_KEY|OTHER/.test(warning)),
      ['Misspelt, or of another PROVIDER, and without effect: RATE_LIMITS, LOOPS_API_KEY'],
    )
    assert.doesNotMatch(program.stdout() + program.stderr(), /hunter2/)
  })

  test('one that cannot be read ends the program', async t => {
    const cwd = temporaryFolder(t)
    mkdirSync(join(cwd, '.env'))
    const { code, stderr } = await runCommand(t, cwd, [], { PORT: '0' })
    assert.equal(code, 1)
    assert.match(stderr, /^waitlist: The file \/.*\/\.env cannot be read: EISDIR/)
  })
})

test('a time is a date, a time in UTC or with an offset, or so long ago', () => {
  assert.equal(moment('2028-02-29').toISOString(), '2028-02-29T00:00:00.000Z')
  assert.equal(moment('2026-11-22T09:30').toISOString(), '2026-11-22T09:30:00.000Z')
  assert.equal(moment('2026-11-22T09:30:01.5+05:30').toISOString(), '2026-11-22T04:00:01.500Z')
  assert.ok(Math.abs(Date.now() - 86_400_000 - moment('24h').getTime()) < 60_000)
  assert.ok(Math.abs(moment('1d').getTime() - moment('24h').getTime()) < 60_000)
})

test('a day that does not exist is refused, rather than taken for one of the next month', () => {
  const unreal = ['2026-02-31', '2027-02-29', '2026-02-30T09:30Z', '2026-06-31T09:30+02:00', '2026-13-01', '2026-12-32']
  for (const text of [...unreal, '2026-11-22T25:00', 'yesterday', '11/22/2026', '']) {
    assert.throws(() => moment(text), /It must be a time such as/, text)
  }
})

test('each command has an example, which the command line understands', async t => {
  const commands = await commandsIn(t)
  assert.equal(commands.length, 16)
  for (const command of commands) {
    const { stdout } = await run(t, ['help', command])
    const lines = stdout.split('\n').filter(line => line.startsWith('  waitlist '))
    assert.ok(lines.length > 0, command)
    for (const line of lines) {
      const [, name, ...args] = line
        .replace(/ [>|] .*/, '')
        .trim()
        .split(' ')
      assert.equal(name, command)
      // With wrong settings each ends after its arguments were read, and before anything is done.
      const { code, stderr } = await run(t, [name!, ...args], { PORT: 'wrong' })
      assert.equal(code, 1, line)
      assert.match(stderr, /the settings are not right/, line)
    }
  }
})

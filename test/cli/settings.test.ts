import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { moment } from '../../src/cli/arguments.ts'
import type { Setting } from '../../src/config/kinds.ts'
import { settings } from '../../src/config/settings.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { commandsIn, helpOf } from '../harness/help.ts'
import { logOf, runCommand, runProgram, spawnProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'

const run = async (t: TestContext, args: string[], env: Record<string, string> = {}, cwd = temporaryFolder(t)) => ({
  cwd,
  ...(await runCommand(t, cwd, args, env)),
})

describe('the command line', { concurrency: true, timeout: 60_000 }, () => {
  test('--help lists every command and every setting with its default; --version says which it is', async t => {
    const { code, stdout } = await run(t, ['--help'])
    assert.equal(code, 0)
    assert.match((await run(t, ['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
    for (const command of ['serve', 'export']) assert.match(stdout, new RegExp(`^  ${command}\\b`, 'm'))
    assert.equal(stdout.match(/running\s+service/g)?.length, 1, 'what holds for nearly all of them is said once')
    for (const [name, { meaning, default: standard, unset }] of Object.entries<Setting<unknown>>(settings)) {
      const line = stdout.split('\n').find(each => each.trim().startsWith(`${name} `)) ?? ''
      assert.ok(line.includes(meaning), name)
      const shown = standard ?? unset
      assert.ok(shown === undefined ? !line.includes('[') : line.includes(`[${shown}]`), name)
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

  test('an option that npm has kept for itself is told, and nothing is done without it', async t => {
    const cwd = temporaryFolder(t)
    const npm = { npm_lifecycle_event: 'waitlist', npm_config_dry_run: 'true', npm_config_search: 'true' }
    const { code, stdout, stderr } = await run(t, ['import', 'people.csv'], npm, cwd)
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.equal(
      stderr,
      'waitlist: npm has kept --dry-run for itself. Type: npm run -s waitlist -- import --dry-run …\n',
    )
    assert.equal((await run(t, ['import', '--dry-run', 'people.csv'], npm, cwd)).code, 1)
    assert.equal((await run(t, ['import', 'people.csv'], { ...npm, npm_lifecycle_event: 'test' }, cwd)).code, 1)
    assert.equal((await run(t, ['stats', '--help'], npm, cwd)).code, 0)
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
    // A limiter that nobody closes would keep the process alive.
    const { code, stderr } = await run(t, [], {
      HOST: '127.0.0.1',
      PORT: String(port),
      REDIS_URL: 'redis://127.0.0.1:1',
    })
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

describe('the file .env', { concurrency: true, timeout: 60_000 }, () => {
  const start = (t: TestContext, content: string | Buffer, env: Record<string, string> = {}) => {
    const cwd = temporaryFolder(t)
    writeFileSync(join(cwd, '.env'), content)
    return runProgram(t, { SHUTDOWN_DELAY: '0', ...env }, { cwd })
  }
  const warnings = (program: Parameters<typeof logOf>[0]) =>
    logOf(program)
      .filter(({ level }) => level === 40)
      .map(({ msg }) => String(msg))

  test('is read; what the environment says goes before it', async t => {
    const program = await start(t, 'HOST=127.0.0.1\nPORT=0\nSERVICE_NAME="From the file"\nEVENT_NAME=from.file\n', {
      EVENT_NAME: 'from.environment',
    })
    const health = (await (await fetch(`${program.baseUrl}/api/health`)).json()) as { service: string }
    assert.equal(health.service, 'From the file')
    assert.equal(logOf(program).find(({ msg }) => msg === 'waitlist is ready')?.event, 'from.environment')
    await until(() => /\nwith settings of \/.*\/\.env\n/.test(program.stderr()))
    assert.equal(await program.end('SIGTERM'), 0)
  })

  test('is read as the editors of other systems write it', async t => {
    const text = 'export HOST=127.0.0.1\r\nexport PORT=0\r\nSERVICE_NAME="Früh dabei"\r\nEVENT_NAME=last\r\n'
    const bytes = [
      Buffer.from(`\uFEFF${text}`, 'utf16le'),
      Buffer.from(`\uFEFF${text}`),
      Buffer.from(`\uFEFF${text}`, 'utf16le').swap16(),
    ]
    for (const content of bytes.slice(0, isSlow ? 3 : 1)) {
      const program = await start(t, content)
      const health = (await (await fetch(`${program.baseUrl}/api/health`)).json()) as { service: string }
      assert.equal(health.service, 'Früh dabei')
      assert.equal(await program.end('SIGTERM'), 0)
      assert.equal(logOf(program).find(({ msg }) => msg === 'waitlist is ready')?.event, 'last')
      assert.deepEqual(
        warnings(program).filter(warning => warning.startsWith('.env')),
        [],
      )
    }
  })

  test('a name in it that is no setting is warned of, without its value', async t => {
    const program = await start(
      t,
      'HOST=127.0.0.1\nPORT=0\nRATE_LIMITS=5\nSMTP_PASSWORD=hunter2\nSERVICE_NAME: hunter2\n',
    )
    await program.end('SIGTERM')
    const unknown = warnings(program).filter(warning => warning.startsWith('.env has '))
    assert.deepEqual(unknown, [
      '.env has RATE_LIMITS, which is not a setting of Waitlist; did you mean RATE_LIMIT?',
      '.env has SMTP_PASSWORD, which is not a setting of Waitlist',
      '.env has a line with SERVICE_NAME that sets nothing; write SERVICE_NAME=<value>',
    ])
    assert.doesNotMatch(program.stdout() + program.stderr(), /hunter2/)
  })

  test('one that cannot be read is told in words, and one without an end is read no further than 64 KiB', async t => {
    for (const [make, sentence] of [
      [(file: string) => mkdirSync(file), / cannot be read: it is a folder\n$/],
      [(file: string) => symlinkSync('/dev/zero', file), / is larger than 64 KiB\.\n$/],
      [
        (file: string) => writeFileSync(file, 'SERVICE_NAME=Fr\xfch\n', 'latin1'),
        / is not UTF-8 text\. Save it as UTF-8\.\n$/,
      ],
    ] as const) {
      const cwd = temporaryFolder(t)
      make(join(cwd, '.env'))
      const { code, stderr } = await run(t, [], { PORT: '0' }, cwd)
      assert.equal(code, 1)
      assert.match(stderr, /^waitlist: The file \/.*\/\.env /)
      assert.match(stderr, sentence)
    }
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
  for (const day of ['2026-02-31', '2027-02-29', '2026-04-31', '2026-02-30T09:30Z', '2026-06-31T09:30+02:00']) {
    assert.throws(() => moment(day), /There is no such day\./, day)
  }
  for (const text of ['2026-13-01', '2026-12-32', '2026-11-22T25:00', 'yesterday', '11/22/2026', '']) {
    assert.throws(() => moment(text), /It must be a time such as/, text)
  }
})

describe('waitlist --help', { timeout: 60_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }, () => {
  test('each command has an example, which the command line understands', async t => {
    const cwd = temporaryFolder(t)
    const top = await commandsIn(t)
    assert.ok(top.length >= 14, top.join(' '))
    const inside = (await commandsIn(t, 'deliveries')).map(name => ['deliveries', name])
    const all = [...top.filter(name => name !== 'deliveries').map(name => [name]), ...inside]
    await Promise.all(
      all.map(async command => {
        const help = await helpOf(t, ...command)
        const lines = (help.split('\nExamples:\n')[1] ?? '').split('\n').filter(line => line.startsWith('  waitlist '))
        assert.ok(lines.length > 0, command.join(' '))
        for (const line of lines) {
          const words = line.replace(/ [>|] .*/, '').match(/(?:[^\s"]|"[^"]*")+/g) ?? []
          const args = words.slice(1).map(word => word.replaceAll('"', ''))
          assert.equal(args[0], command[0])
          // With wrong settings each ends after its arguments were read, and before anything is done.
          const { exited, stderr } = spawnProgram(t, { PORT: 'wrong' }, { cwd, args })
          assert.equal(await exited, 1, line)
          assert.match(stderr(), /the settings are not right/, line)
        }
      }),
    )
  })
})

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { operatorOf } from '../../src/app/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { runCommand, runProgram, spawnProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

const eventName = 'waitlist.joined'

/** A folder with an empty list, at `data/waitlist.db`, where the program looks by default. */
async function empty(t: TestContext): Promise<string> {
  const cwd = temporaryFolder(t)
  await (await sqliteStore({ path: join(cwd, 'data', 'waitlist.db'), eventName, minimumFree: 0 })).close()
  return cwd
}

const run = (t: TestContext, cwd: string, args: string[], { env = {}, input = '' } = {}) =>
  runCommand(t, cwd, args, env, input)

/** What a list has of each contact. */
async function contactsIn(url: string) {
  const settings = await readConfig({ DATABASE_URL: url })
  assert.ok('config' in settings)
  return Array.fromAsync(await (await operatorOf(settings.config)).contacts())
}

const people = [
  ['Ada Lovelace', 'Ada@Example.com', 'listed', '{"utm_source":"=news\\"","ref":"\'@x"}'],
  ["'=1+1", 'quote@example.com', 'pending', null],
  ["''＝2", 'quotes@example.com', 'listed', '{"utm_term":"ünï 🦀"}'],
  ['\'O Neill, "x"; y', 'plain@example.com', 'listed', null],
  ['=HYPERLINK("http://evil.example")', '+formula@example.com', 'listed', null],
  ["-1\\,\\n'", 'minus@example.com', 'listed', null],
  ['Held', 'held@example.com', 'held', null, 'same-mailbox'],
] as const

/** A list with these people, whose times are not round. */
async function listed(t: TestContext): Promise<string> {
  const cwd = await empty(t)
  withDatabase(join(cwd, 'data', 'waitlist.db'), database => {
    const insert = database.prepare(
      'insert into contact (id, name, email, email_key, state, created_at, source, reason)' +
        ' values (?1, ?2, ?3, lower(?3), ?4, ?5, ?6, ?7)',
    )
    for (const [i, [name, email, state, source, reason = null]] of people.entries()) {
      insert.run(
        `01956c1f-0b51-7abc-8def-01234567890${i}`,
        name,
        email,
        state,
        1_741_064_767_089 + i * 777,
        source,
        reason,
      )
    }
  })
  return cwd
}

describe('waitlist import', { concurrency: true, timeout: 120_000 }, () => {
  for (const format of ['csv', 'json'] as const) {
    test(`what is exported as ${format} comes back as it was, into either store`, async t => {
      const from = await listed(t)
      const original = await contactsIn(`sqlite:${join(from, 'data', 'waitlist.db')}`)
      assert.equal(original.length, people.length)
      const { stdout: exported } = await run(t, from, ['export', '--format', format])
      const url = await server.database()
      await (await postgresStore({ url, eventName, log: recordingLog().log })).close()
      const cwd = await empty(t)
      for (const [database, env] of [
        [`sqlite:${join(cwd, 'data', 'waitlist.db')}`, {}],
        [url, { DATABASE_URL: url }],
      ] as const) {
        const { code, stdout, stderr } = await run(t, cwd, ['import', '-'], { env, input: exported })
        assert.deepEqual([stderr, code], ['', 0])
        assert.equal(stdout, '7 added, 0 on the list before, 0 erased before, 0 not valid.\n')
        assert.deepEqual(await contactsIn(database), original)
      }
    })
  }

  test("another tool's file: the guess is shown first, bad lines by number, people only in the report", async t => {
    const cwd = await empty(t)
    const file =
      'Email Address;First Name;Last Name;CONFIRM_TIME\r\nada@example.com;Ada;Lovelace;2025-01-02 03:04:05\r\n' +
      'zebulon;Zebulon;Quixote;\r\nADA@example.com;Again;;\r\n=quixote@example.com;\x1b[2J;;\r\n'
    writeFileSync(join(cwd, 'list.txt'), file)
    const dry = await run(t, cwd, ['import', '--dry-run', 'list.txt'])
    assert.equal(dry.code, 1)
    assert.equal(dry.stdout, '1 would be added, 1 on the list before, 0 erased before, 2 not valid.\n')
    assert.equal((await run(t, cwd, ['export'])).stdout.split('\r\n').length, 2, 'a dry run writes nothing')
    const { code, stdout, stderr } = await run(t, cwd, ['import', 'list.txt', '--json', '--report', 'report.csv'])
    assert.equal(code, 1)
    assert.deepEqual(JSON.parse(stdout), {
      added: 1,
      existing: 1,
      invalid: 2,
      erased: 0,
      lines: [
        { line: 3, reason: 'email must be a valid email address' },
        { line: 5, reason: 'name must not contain control characters' },
      ],
      more: 0,
    })
    assert.match(
      stderr,
      /^Guessed by the heading: email is "Email Address"; name is "First Name" and "Last Name"; createdAt/,
    )
    assert.match(dry.stderr, / {2}- line 3: email must be a valid email address\n/)
    assert.doesNotMatch(dry.stderr + stderr + stdout, /zebulon|quixote|\x1b/i)
    const report = join(cwd, 'report.csv')
    assert.equal(
      readFileSync(report, 'utf8'),
      'line,reason,name,email\r\n3,email must be a valid email address,Zebulon Quixote,zebulon\r\n' +
        "5,name must not contain control characters,\x1b[2J,'=quixote@example.com\r\n",
    )
    assert.equal(statSync(report).mode & 0o777, 0o600)
    const again = await run(t, cwd, ['import', 'list.txt', '--report', 'report.csv'])
    assert.equal(again.code, 1)
    assert.match(again.stderr, /report\.csv exists already/)
  })

  test('many bad lines: as many as one reads are shown, and how many more there are is said', async t => {
    const cwd = await empty(t)
    const input = `name,email\n${'Bob,bob\n'.repeat(1_500)}`
    const { code, stderr } = await run(t, cwd, ['import', '-'], { input })
    assert.equal(code, 1)
    assert.equal(stderr.match(/- line \d+: /g)?.length, 20)
    assert.match(
      stderr,
      /^waitlist: 1,500 lines are not valid:$[\s\S]* {2}- and 1,480 more; --report writes all of them/m,
    )
  })

  test('a column that is not there is misuse; a file that breaks off fails, after what comes before', async t => {
    const cwd = await empty(t)
    const misused = await run(t, cwd, ['import', '--map', 'name=N', '--map', 'email=Nope', '-'], { input: 'N,E\n' })
    assert.deepEqual([misused.code, misused.stdout], [2, ''])
    assert.match(misused.stderr, /^waitlist: The heading has no column Nope/)
    const input = 'name,email\nAda,ada@example.com\nBob,"bob@example.com\n'
    const broken = await run(t, cwd, ['import', '-'], { input })
    assert.equal(broken.code, 1)
    assert.match(broken.stdout, /^1 added/)
    assert.match(broken.stderr, /never closed\. Nothing after that was read\./)
  })

  test('without a database it makes one and says so, also from an empty file; a dry run does not', async t => {
    for (const was of [null, '']) {
      const cwd = temporaryFolder(t)
      const path = join(cwd, 'waitlist.db')
      if (was !== null) writeFileSync(path, was)
      const before = readdirSync(cwd)
      const env = { DATABASE_URL: 'sqlite:waitlist.db' }
      const input = 'name,email\nAda,ada@example.com\n'
      const dry = await run(t, cwd, ['import', '--dry-run', '-'], { env, input })
      assert.deepEqual([dry.code, dry.stdout.slice(0, 14)], [0, '1 would be add'])
      assert.match(dry.stderr, /^There is no database at waitlist\.db yet: it would be made\.$/m)
      assert.deepEqual(readdirSync(cwd), before)
      const { code, stdout, stderr } = await run(t, cwd, ['import', '-'], { env, input })
      assert.deepEqual([code, stdout.slice(0, 8)], [0, '1 added,'])
      assert.match(stderr, /^There was no database at waitlist\.db: it is made\.$/m)
      assert.equal(statSync(path).mode & 0o777, 0o600)
      assert.match((await run(t, cwd, ['list'], { env })).stdout, /ada@example\.com/)
    }
  })

  test('a database that cannot be made is refused, and no report is left', async t => {
    const cwd = temporaryFolder(t)
    writeFileSync(join(cwd, 'file'), '')
    const env = { DATABASE_URL: 'sqlite:file/waitlist.db' }
    const args = ['import', '--report', 'report.csv', '-']
    const { code, stderr } = await run(t, cwd, args, { env, input: 'name,email\nAda,ada@example.com\n' })
    assert.equal(code, 1)
    assert.match(stderr, /^waitlist: file\/waitlist\.db cannot be used: \S/m)
    assert.doesNotMatch(stderr, /is made/)
    assert.deepEqual(readdirSync(cwd), ['file'], 'no report is in the way of the next attempt')
  })

  test('stopped, it leaves no report in the way of the same command', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const cwd = await empty(t)
    const program = spawnProgram(t, {}, { cwd, args: ['import', '--report', 'report.csv', '-'] })
    program.process.stdin!.write('name,email\nAda,ada@example.com\nBob,\n')
    await until(() => existsSync(join(cwd, 'report.csv')))
    program.process.kill('SIGINT')
    assert.equal(await program.exited, 1)
    assert.match(program.stderr(), /stopped before the end\. Run the same command again/)
    assert.deepEqual(readdirSync(cwd), ['data'])
  })

  test('--announce beside a running service: the webhook hears of them', async t => {
    const cwd = temporaryFolder(t)
    const receiver = await startReceiver(t, () => ({ status: 204 }))
    const env = { PORT: '0', HOST: '127.0.0.1', WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret }
    const service = await runProgram(t, env, { cwd })
    const quiet = 'name,email\nQuiet,quiet@example.com\n'
    assert.equal((await run(t, cwd, ['import', '-'], { env, input: quiet })).code, 0)
    const input = `${quiet}Ada,ada@example.com\n`
    const { code, stdout } = await run(t, cwd, ['import', '--announce', '-'], { env, input })
    assert.equal(code, 0)
    assert.match(stdout, /^1 added, 1 on the list before/)
    await receiver.arrived(1)
    assert.deepEqual(
      receiver.received.map(({ json }) => json.data.email),
      ['ada@example.com'],
    )
    assert.equal(await service.end('SIGTERM'), 0)
  })
})

import assert from 'node:assert/strict'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { type ColumnOptions, columnsIn } from '../../src/import/columns.ts'
import { parseContact } from '../../src/import/contact.ts'
import { recordsOf } from '../../src/import/read.ts'
import { run } from '../harness/command.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { runProgram } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'
import { scene } from '../operate/scene.ts'

const server = await sharedPostgres()

/** A folder with an empty list. */
async function empty(t: TestContext): Promise<string> {
  const cwd = temporaryFolder(t)
  await (await storeAt(join(cwd, 'data', 'waitlist.db'))).close()
  return cwd
}

const imported = (t: TestContext, cwd: string, input: string, ...options: string[]) =>
  run(t, cwd, ['import', ...options, '-'], {}, input)

describe('waitlist import', { concurrency: true }, () => {
  test('what is exported as JSON comes back as it was, into either store', async t => {
    const { cwd: from } = await scene(t)
    const { stdout: exported } = await run(t, from, ['export', '--json'])
    for (const env of [{}, { DATABASE_URL: await server.database() }]) {
      const cwd = await empty(t)
      const { code, stdout, stderr } = await run(t, cwd, ['import', '-'], env, exported)
      assert.deepEqual([stderr, code], ['', 0])
      assert.equal(stdout, '3 added, 0 on the list before, 0 erased before, 0 not valid.\n')
      assert.equal((await run(t, cwd, ['export', '--json'], env)).stdout, exported)
    }
    const csv = await imported(t, await empty(t), (await run(t, from, ['export'])).stdout)
    assert.equal(csv.code, 1)
    assert.match(csv.stderr, /Import the JSON export, which keeps their states: waitlist export --json/)
  })

  test("another tool's file: what is guessed is said, bad lines by number, without a word of the people", async t => {
    const cwd = await empty(t)
    const file =
      'Email Address;First Name;Last Name;CONFIRM_TIME\r\nada@example.com;Ada;Lovelace;2025-01-02 03:04:05\r\n' +
      'zebulon;Zebulon;Quixote;\r\nADA@example.com;Again;;\r\n=quixote@example.com;\x1b[2J;;\r\n'
    const dry = await imported(t, cwd, file, '--dry-run')
    assert.equal(dry.code, 1)
    assert.equal(dry.stdout, '1 would be added, 1 on the list before, 0 erased before, 2 not valid.\n')
    assert.deepEqual(contactsIn(join(cwd, 'data/waitlist.db')), [], 'a dry run writes nothing')
    const { code, stdout, stderr } = await imported(t, cwd, file, '--json')
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
    })
    assert.match(stderr, /^By the heading, email is "Email Address"; name is "First Name" and "Last Name"; createdAt/)
    assert.match(dry.stderr, / {2}- line 3: email must be a valid email address\n/)
    assert.doesNotMatch(dry.stderr + stderr + stdout, /zebulon|quixote|\x1b/i)
  })

  test('a column that may say who must not be mailed is refused, unless it is mapped or ignored', async t => {
    const cwd = await empty(t)
    for (const column of ['Status', 'Unsubscribed', 'Bounced', 'opt-out', 'Subscribed']) {
      const file = `name,email,${column}\nAda,ada@example.com,x\n`
      const refused = await imported(t, cwd, file)
      assert.deepEqual([refused.code, refused.stdout], [1, ''])
      assert.match(refused.stderr, new RegExp(`The column ${column} may say who must not be mailed`))
      assert.equal((await imported(t, cwd, file, '--ignore', column)).code, 0)
    }
  })

  test('a file of addresses alone takes the part before the @ as the name, and says so', async t => {
    const cwd = await empty(t)
    for (const file of ['ada@example.com\nbob@example.com\n', 'Email\ncyd@example.com\n']) {
      const { code, stderr } = await imported(t, cwd, file)
      assert.equal(code, 0)
      assert.match(stderr, /The part of each address before the @ is taken as the name\.\n$/)
    }
    assert.match((await run(t, cwd, ['list'])).stdout, /cyd +cyd@.*\n.*bob +bob@.*\n.*ada +ada@/)
  })

  test('a column that is not there is refused; a file that breaks off fails, after what comes before', async t => {
    const cwd = await empty(t)
    const none = await imported(t, cwd, 'N,E\n', '--map', 'name=N', '--map', 'email=Nope')
    assert.deepEqual([none.code, none.stdout], [1, ''])
    assert.match(none.stderr, /^waitlist: The heading has no column Nope/)
    const broken = await imported(t, cwd, 'name,email\nAda,ada@example.com\nBob,"bob@example.com\n')
    assert.equal(broken.code, 1)
    assert.match(broken.stdout, /^1 added/)
    assert.match(broken.stderr, /never closed\. Nothing after that was read\./)
  })

  test('without a list it makes one and says so; a dry run does not', async t => {
    const cwd = temporaryFolder(t)
    const input = 'name,email\nAda,ada@example.com\n'
    const dry = await imported(t, cwd, input, '--dry-run')
    assert.deepEqual([dry.code, dry.stdout.slice(0, 14)], [0, '1 would be add'])
    assert.match(dry.stderr, /^There is no list yet: it would be made at data\/waitlist\.db\.$/m)
    assert.deepEqual(readdirSync(cwd), [])
    const { code, stderr } = await imported(t, cwd, input)
    assert.equal(code, 0)
    assert.match(stderr, /^There is no list yet: it is made at /m)
    assert.equal(statSync(join(cwd, 'data/waitlist.db')).mode & 0o777, 0o600)
  })

  test('--announce beside a running service: the webhook gets them', async t => {
    const cwd = temporaryFolder(t)
    const receiver = await startReceiver(t, () => ({ status: 204 }))
    const env = { PORT: '0', HOST: '127.0.0.1', WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret }
    const service = await runProgram(t, env, { cwd })
    const quiet = 'name,email\nQuiet,quiet@example.com\n'
    assert.equal((await run(t, cwd, ['import', '-'], env, quiet)).code, 0)
    const { code, stdout } = await run(t, cwd, ['import', '--announce', '-'], env, `${quiet}Ada,ada@example.com\n`)
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

/** Reads a text as a file, in parts of so many bytes. */
async function read(content: string | Buffer, part = 7) {
  const bytes = Buffer.from(content)
  const parts = Array.from({ length: Math.ceil(bytes.length / part) }, (_, i) =>
    bytes.subarray(i * part, (i + 1) * part),
  )
  const { records } = await recordsOf('-', Readable.from(parts))
  return Array.fromAsync<{ readonly line: number; readonly value: unknown }>(records)
}

test('comma, semicolon and tab; quotes, line breaks in them, empty lines, and no line break at the end', async () => {
  for (const part of [1, 7, 1_000]) {
    for (const delimiter of [',', ';', '\t']) {
      const lines = [
        ['Name', 'E-mail', 'Notes'],
        ['"Ada ""Countess"", Lovelace; etc."', 'ada@example.com', '"a\nb\n\nc"'],
        [''],
        ['Says "hi"', 'cyd@example.com', 'x'],
        ['Dot', 'dot@example.com'],
      ]
      assert.deepEqual(await read(lines.map(fields => fields.join(delimiter)).join('\n'), part), [
        { line: 1, value: ['Name', 'E-mail', 'Notes'] },
        { line: 2, value: ['Ada "Countess", Lovelace; etc.', 'ada@example.com', 'a\nb\n\nc'] },
        { line: 7, value: ['Says "hi"', 'cyd@example.com', 'x'] },
        { line: 8, value: ['Dot', 'dot@example.com'] },
      ])
    }
  }
})

test('UTF-8 with and without a byte order mark, UTF-16, and line breaks of any kind', async () => {
  const text = 'Name,Email\r\nAdä 🦀,a@example.com\r\n'
  const utf16 = Buffer.from(`\uFEFF${text}`, 'utf16le')
  for (const content of [text, `\uFEFF${text}`, utf16, Buffer.from(utf16).swap16(), text.replaceAll('\r', '')]) {
    const [, { value } = {}] = await read(content)
    assert.deepEqual(value, ['Adä 🦀', 'a@example.com'])
  }
  await assert.rejects(read(Buffer.from(text, 'latin1')), /is not UTF-8 text\. Save it as UTF-8/)
})

test('what cannot be read is refused with a sentence', async t => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'empty.csv'), '\n \n')
  const long = 'x'.repeat(1_100_000)
  const refused: readonly (readonly [() => Promise<unknown>, RegExp])[] = [
    [() => recordsOf(folder, Readable.from([])), /cannot be read/],
    [() => recordsOf(join(folder, 'none.csv'), Readable.from([])), /^OperatorError: There is no file .*none\.csv\.$/],
    [() => recordsOf(join(folder, 'empty.csv'), Readable.from([])), /empty\.csv is empty\.$/],
    [() => read('N\0a\0m\0e\0,\0'), /NUL bytes/],
    [() => read('[{"name":"Ada"}]'), /one JSON array\. JSON Lines/],
    [
      () => read(`name,email\nAda,"ada@example.com\nBob,bob@example.com\n`),
      /quotation mark that is opened in or after line 2/,
    ],
    [
      () => read(`name,email\nAda,a@example.com\n${long},b@example.com\n`, 65_536),
      /A line in or after line 2 has more than/,
    ],
    [() => read(`{"name":"Ada"}\n{"x":"${long}${long}"}\n`, 65_536), /Line 2 goes on for more/],
  ]
  for (const [reading, sentence] of refused) {
    await assert.rejects(reading(), error => {
      assert.match(String(error), sentence)
      return true
    })
  }
})

const named = (heading: string, options: ColumnOptions = {}) => {
  const names = heading.split(',')
  return Object.fromEntries(
    Object.entries(columnsIn(names, options)).map(([member, found]) => [member, found.map(i => names[i])]),
  )
}

test('columns are guessed by the headings of other tools', () => {
  assert.deepEqual(named('Email Address,First Name,Last Name,MEMBER_RATING,OPTIN_TIME,CONFIRM_TIME,TAGS'), {
    email: ['Email Address'],
    name: ['First Name', 'Last Name'],
    createdAt: ['CONFIRM_TIME'],
  })
  assert.deepEqual(named('Submission ID,Submitted at,Full name,E-mail,utm_source,ref'), {
    email: ['E-mail'],
    name: ['Full name'],
    createdAt: ['Submitted at'],
    utm_source: ['utm_source'],
    ref: ['ref'],
  })
  assert.throws(() => named('Email,name,E-Mail'), /the column email more than once/)
  assert.throws(
    () => named('Ada Lovelace,ada@example.com'),
    error => {
      assert.match(String(error), /--map email=… and --map name=…/)
      assert.doesNotMatch(String(error), /Ada|ada/, 'without a heading, the first line is a person')
      return true
    },
  )
})

test('--map says which columns they are', () => {
  const heading = 'E,First,Last,Da+te,twice,twice'
  assert.deepEqual(named(heading, { map: { name: 'First+Last', email: 'E', createdAt: 'Da+te' } }), {
    name: ['First', 'Last'],
    email: ['E'],
    createdAt: ['Da+te'],
  })
  for (const [map, sentence] of [
    [{ nmae: 'First', email: 'E' }, /no nmae\. There are name, email, createdAt, utm_source/],
    [{ name: 'First', email: 'Mail' }, /no column Mail/],
    [{ name: 'twice', email: 'E' }, /column twice more than once/],
    [{ name: 'First' }, /--map email=…/],
  ] as const) {
    assert.throws(() => named(heading, { map: map as Record<string, string> }), sentence)
  }
})

const now = Date.parse('2026-11-22T12:00:00Z')

test('the rules are those of a signup; times are in UTC unless they have an offset', () => {
  const ada = { name: ' Ada ', email: 'ada@example.com' }
  const problem = (more: object) => {
    const row = parseContact({ ...ada, ...more }, now)
    return 'problem' in row ? row.problem : 'none'
  }
  assert.equal(problem({}), 'none')
  assert.equal(problem({ name: 'A\0da' }), 'name must not contain control characters')
  assert.equal(problem({ name: '' }), 'name is required')
  assert.equal(problem({ email: 'ada@' }), 'email must be a valid email address')
  assert.match(problem({ id: '1' }), /^id must be a UUID/)
  assert.equal(problem({ state: 'subscribed' }), 'state must be unconfirmed, pending, held, listed or invited')
  assert.equal(problem({ state: 'held', reason: 'same-mailbox' }), 'none')
  for (const unheld of [{ state: 'held' }, { state: 'held', reason: 'spam' }, { reason: 'unverified' }]) {
    assert.match(problem(unheld), /^reason belongs to a contact that is held, and must be link-in-name, same-mailbox, /)
  }
  assert.equal(problem({ source: 'x' }), 'source must be an object')
  const confirmedAt = '2025-01-02'
  assert.equal(problem({ state: 'listed', confirmedAt }), 'none')
  assert.match(problem({ state: 'listed', confirmedAt: 'soon' }), /^confirmedAt must be a time/)
  assert.match(problem({ state: 'unconfirmed', confirmedAt }), /^confirmedAt belongs to a contact that is confirmed$/)
  const time = (createdAt: unknown) => {
    const row = parseContact({ ...ada, createdAt }, now)
    return 'problem' in row ? 'no' : row.createdAt?.toISOString()
  }
  assert.equal(time(''), undefined)
  assert.equal(time('2025-01-02'), '2025-01-02T00:00:00.000Z')
  assert.equal(time('2025-01-02 03:04'), '2025-01-02T03:04:00.000Z')
  assert.equal(time('2025-01-02 03:04:05 UTC'), '2025-01-02T03:04:05.000Z')
  assert.equal(time('2025-01-02T03:04:05.678901Z'), '2025-01-02T03:04:05.678Z')
  assert.equal(time('2025-01-02T03:04:05+0530'), '2025-01-01T21:34:05.000Z')
  assert.equal(time('2025-01-02T03:04:05-05'), '2025-01-02T08:04:05.000Z')
  for (const bad of [
    '2025-02-30',
    '2025-13-01',
    '01/02/2025 03:04',
    '1969-12-31',
    '2026-11-24',
    'x',
    5,
    '2025-01-02T25:00',
  ]) {
    assert.equal(time(bad), 'no', String(bad))
  }
  const { source } = parseContact({ ...ada, source: { utm_source: ' news\n', ref: '', other: 'x' } }, now) as {
    source: unknown
  }
  assert.deepEqual(source, { utm_source: 'news' })
})

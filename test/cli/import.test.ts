import assert from 'node:assert/strict'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { operatorOf } from '../../src/app/database.ts'
import { csvField, withoutApostrophe } from '../../src/cli/formats.ts'
import {
  type Columns,
  csvReader,
  entryOf,
  guessedColumns,
  type Line,
  mappedColumns,
  ownColumns,
  readJsonLine,
} from '../../src/cli/import/contacts.ts'
import { LONGEST, recordsOf, textOf } from '../../src/cli/import/records.ts'
import { readConfig } from '../../src/config/config.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { runCommand, runProgram } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'

const server = await sharedPostgres()

/** A folder with an empty list, at `data/waitlist.db`, where the program looks by default. */
async function empty(t: TestContext): Promise<string> {
  const cwd = temporaryFolder(t)
  await (await storeAt(join(cwd, 'data', 'waitlist.db'))).close()
  return cwd
}

const run = (t: TestContext, cwd: string, args: string[], { env = {}, input = '' } = {}) =>
  runCommand(t, cwd, args, env, input)

/** What a list has of each contact. */
async function contactsIn(url: string) {
  const settings = await readConfig({ DATABASE_URL: url })
  assert.ok('config' in settings)
  return Array.fromAsync(operatorOf(settings.config).contacts({}))
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

describe('waitlist import', { concurrency: true }, () => {
  for (const format of ['csv', 'json'] as const) {
    test(`what is exported as ${format} comes back as it was, into either store`, async t => {
      const from = await listed(t)
      const original = await contactsIn(`sqlite:${join(from, 'data', 'waitlist.db')}`)
      assert.equal(original.length, people.length)
      const { stdout: exported } = await run(t, from, ['export', '--format', format])
      const url = await server.database()
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

  test("another tool's file: the guess is shown first, bad lines by number, without a word of the people", async t => {
    const cwd = await empty(t)
    const file =
      'Email Address;First Name;Last Name;CONFIRM_TIME\r\nada@example.com;Ada;Lovelace;2025-01-02 03:04:05\r\n' +
      'zebulon;Zebulon;Quixote;\r\nADA@example.com;Again;;\r\n=quixote@example.com;\x1b[2J;;\r\n'
    writeFileSync(join(cwd, 'list.txt'), file)
    const dry = await run(t, cwd, ['import', '--dry-run', 'list.txt'])
    assert.equal(dry.code, 1)
    assert.equal(dry.stdout, '1 would be added, 1 on the list before, 0 erased before, 2 not valid.\n')
    assert.equal((await run(t, cwd, ['export'])).stdout.split('\r\n').length, 2, 'a dry run writes nothing')
    const { code, stdout, stderr } = await run(t, cwd, ['import', 'list.txt', '--json'])
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

  test('without a database it makes one and says so; a dry run does not', async t => {
    const cwd = temporaryFolder(t)
    const path = join(cwd, 'waitlist.db')
    const env = { DATABASE_URL: 'sqlite:waitlist.db' }
    const input = 'name,email\nAda,ada@example.com\n'
    const dry = await run(t, cwd, ['import', '--dry-run', '-'], { env, input })
    assert.deepEqual([dry.code, dry.stdout.slice(0, 14)], [0, '1 would be add'])
    assert.match(dry.stderr, /^There is no database yet: it would be made\.$/m)
    assert.deepEqual(readdirSync(cwd), [])
    const { code, stdout, stderr } = await run(t, cwd, ['import', '-'], { env, input })
    assert.deepEqual([code, stdout.slice(0, 8)], [0, '1 added,'])
    assert.match(stderr, /^There is no database yet: it is made\.$/m)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.match((await run(t, cwd, ['list'], { env })).stdout, /ada@example\.com/)
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

const now = Date.parse('2026-11-22T12:00:00Z')
const never = new AbortController().signal

/** Reads a text as a file, in parts as small as asked for. */
async function read(text: string, { part = 7, columns }: { part?: number; columns?: Columns } = {}): Promise<Line[]> {
  const parts = (async function* () {
    for (let i = 0; i < text.length; i += part) yield text.slice(i, i + part)
  })()
  const records = await recordsOf(parts, 'The file')
  if (records.format === 'json')
    return (await Array.fromAsync(records.records)).flat().map(each => readJsonLine(each, now))
  const { heading } = records
  const own = ownColumns(heading)
  const found = columns ?? own ?? guessedColumns(heading)
  assert.ok(!('unclear' in found), 'unclear' in found ? found.unclear : '')
  const reader = csvReader(found, heading.length, columns === undefined && own !== undefined)
  return (await Array.fromAsync(records.records)).flat().map(each => reader(each, now))
}

const brief = (line: Line) =>
  'bad' in line ? `${line.bad.line}: ${line.bad.reason}` : `${line.signup.name} <${line.signup.email}>`

async function bytes(t: TestContext, content: Buffer | string): Promise<string> {
  const file = join(temporaryFolder(t), 'list.csv')
  writeFileSync(file, content)
  return (await Array.fromAsync(textOf(file, never))).join('')
}

test('comma, semicolon and tab; quotes, line breaks in them, empty lines, and no line break at the end', async () => {
  for (const part of [1, 7, 1_000]) {
    for (const delimiter of [',', ';', '\t']) {
      const lines = [
        ['Name', 'E-mail', 'Notes'],
        ['"Ada ""Countess"", Lovelace; etc."', 'ada@example.com', '"a\nb\n\nc"'],
        [''],
        ['Bob', 'bob', '"a\nb"'],
        ['Says "hi"', 'cyd@example.com', 'x'],
        ['Dot', 'dot@example.com'],
        ['Eve', 'eve@example.com', ''],
      ]
      const text = lines.map(fields => fields.join(delimiter)).join('\n')
      assert.deepEqual((await read(text, { part })).map(brief), [
        'Ada "Countess", Lovelace; etc. <ada@example.com>',
        '7: email must be a valid email address',
        'Says "hi" <cyd@example.com>',
        '10: it has 2 columns, and the heading 3',
        'Eve <eve@example.com>',
      ])
    }
  }
})

test('UTF-8 with and without a byte order mark, UTF-16, and line breaks of any kind', async t => {
  const text = 'Name,Email\r\nAdä 🦀,a@example.com\rBob,b@example.com\n'
  const expected = 'Name,Email\nAdä 🦀,a@example.com\nBob,b@example.com\n'
  const utf16 = Buffer.from(`\uFEFF${text}`, 'utf16le')
  assert.equal(await bytes(t, text), expected)
  assert.equal(await bytes(t, `\uFEFF${text}`), expected)
  assert.equal(await bytes(t, utf16), expected)
  assert.equal(await bytes(t, Buffer.from(utf16).swap16()), expected)
  assert.equal(await bytes(t, 'x'), 'x')
  const umlauts = `Name,Email\n${'é'.repeat(100_000)}`
  assert.equal(await bytes(t, umlauts), umlauts, 'parts do not end where characters do')
  await assert.rejects(bytes(t, Buffer.from(text, 'latin1')), /is not UTF-8 text\. Save it as UTF-8/)
})

test('what cannot be read is refused with a sentence', async t => {
  const folder = temporaryFolder(t)
  const refused: readonly (readonly [Promise<unknown>, RegExp])[] = [
    [Array.fromAsync(textOf(folder, never)), /is a folder\.$/],
    [Array.fromAsync(textOf(join(folder, 'none.csv'), never)), /^OperatorError: There is no file .*none\.csv\.$/],
    [read(''), /The file is empty/],
    [read('\n \n'), /The file is empty/],
    [read('N\0a\0m\0e\0,\0'), /NUL bytes/],
    [read('[{"name":"Ada"}]'), /one JSON array\. JSON Lines/],
    [
      read(`name,email\nAda,"ada@example.com\nBob,bob@example.com\n`),
      /quotation mark that is opened in or after line 2/,
    ],
    [
      read(`name,email\nAda,a@example.com\n${'x'.repeat(LONGEST + 9)},b@example.com\n`, { part: 65_536 }),
      /Line 3 goes on/,
    ],
    [read(`{"name":"Ada"}\n{"x":"${'x'.repeat(2 * LONGEST)}"}\n`, { part: 65_536 }), /Line 2 goes on for more/],
  ]
  for (const [reading, sentence] of refused) {
    await assert.rejects(reading, error => {
      assert.ok(error instanceof OperatorError, String(error))
      assert.match(String(error), sentence)
      return true
    })
  }
  assert.deepEqual(await read('name,email\n'), [], 'a heading alone is a list of nobody')
})

const at = (heading: readonly string[], columns: ReturnType<typeof guessedColumns>) =>
  'unclear' in columns
    ? columns.unclear
    : Object.fromEntries(Object.entries(columns).map(([member, found]) => [member, found.map(i => heading[i])]))

test('columns are guessed by the headings of other tools', () => {
  const guess = (heading: string) => at(heading.split(','), guessedColumns(heading.split(',')))
  assert.deepEqual(guess('Email Address,First Name,Last Name,MEMBER_RATING,OPTIN_TIME,CONFIRM_TIME,TAGS'), {
    email: ['Email Address'],
    name: ['First Name', 'Last Name'],
    createdAt: ['CONFIRM_TIME'],
  })
  assert.deepEqual(guess('id,first_name,email,created_at,status'), {
    email: ['email'],
    name: ['first_name'],
    createdAt: ['created_at'],
  })
  assert.deepEqual(guess('Submission ID,Submitted at,Full name,E-mail,utm_source,ref'), {
    email: ['E-mail'],
    name: ['Full name'],
    createdAt: ['Submitted at'],
    utm_source: ['utm_source'],
    ref: ['ref'],
  })
  assert.match(String(guess('Email,name,E-Mail')), /more than one column for the email/)
  const nobody = String(guess('Ada Lovelace,ada@example.com'))
  assert.match(nobody, /no well-known heading for the name and the email .*--map name=… and --map email=…/)
  assert.doesNotMatch(nobody, /Ada|ada/, 'without a heading, the first line is a person')
})

test('--map says which columns they are', () => {
  const heading = ['E', 'First', 'Last', 'Da+te', 'twice', 'twice']
  const map = (map: Record<string, string>) => at(heading, mappedColumns(heading, map))
  assert.deepEqual(map({ name: 'First+Last', email: 'E', createdAt: 'Da+te' }), {
    name: ['First', 'Last'],
    email: ['E'],
    createdAt: ['Da+te'],
  })
  assert.deepEqual(map({ name: 'E', email: 'E' }), { name: ['E'], email: ['E'] })
  assert.match(
    String(map({ nmae: 'First', email: 'E' })),
    /no member nmae\. There are name, email, createdAt, utm_source/,
  )
  assert.match(String(map({ name: 'First', email: 'Mail' })), /no column Mail/)
  assert.match(String(map({ name: 'twice', email: 'E' })), /column twice more than once/)
  assert.match(String(map({ email: 'E' })), /add --map name=…\./)
})

test('our own columns are known, in the order in which we write them', () => {
  assert.deepEqual(ownColumns(['id', 'name', 'email', 'state', 'createdAt']), {
    id: [0],
    name: [1],
    email: [2],
    state: [3],
    createdAt: [4],
  })
  assert.deepEqual(ownColumns(['id', 'name', 'email', 'state', 'createdAt', 'utm_source', 'ref'])?.ref, [6])
  assert.equal(ownColumns(['id', 'name', 'email', 'state', 'created_at']), undefined)
  assert.equal(ownColumns(['id', 'name', 'email', 'state', 'createdAt', 'tags']), undefined)
})

test('a line that our own file ends in the middle of is no contact', async () => {
  const heading = 'id,name,email,state,createdAt,ref\n'
  const ada = ',Ada,ada@example.com,listed,2026-01-02T03:04:05.678Z,abc'
  assert.deepEqual((await read(`${heading}${ada}\n`)).map(brief), ['Ada <ada@example.com>'])
  assert.deepEqual((await read(heading + ada)).map(brief), ['2: the file ends before this line does'])
  assert.deepEqual((await read(heading + ada.slice(0, 20))).map(brief), ['2: it has 3 columns, and the heading 6'])
  assert.deepEqual((await read(`{"name":"Ada","email":"ada@example.com"}\n{"name":"Bo`)).map(brief), [
    'Ada <ada@example.com>',
    '2: it must be a JSON object',
  ])
})

test('the rules are those of a signup; times are in UTC unless they have an offset', () => {
  const ada = { name: ' Ada ', email: 'ada@example.com' }
  const problem = (more: object) => {
    const entry = entryOf({ ...ada, ...more }, now)
    return 'problem' in entry ? entry.problem : 'none'
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
    const entry = entryOf({ ...ada, createdAt }, now)
    return 'problem' in entry ? 'no' : entry.createdAt?.toISOString()
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
  const { source } = entryOf({ ...ada, source: { utm_source: ' news\n', ref: '', other: 'x' } }, now) as {
    source: unknown
  }
  assert.deepEqual(source, { utm_source: 'news' })
})

test('whatever the name is, its field in our CSV is no formula, and is read as it was', () => {
  const part = fc.constantFrom("'", '=', '＝', '@', '-', '+', '"', ',', ';', '\t', 'x', ' ', '\u2028')
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.array(part, { maxLength: 5 }).map(parts => parts.join('')),
  )
  fc.assert(
    fc.property(text, name => {
      const field = csvField(name)
      const unquoted = field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field
      assert.doesNotMatch(unquoted, /^[=+\-@＝＋－＠]/)
      assert.equal(withoutApostrophe(unquoted), name)
    }),
    { numRuns: 300 },
  )
})

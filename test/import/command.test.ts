import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { type ColumnOptions, contactsIn } from '../../src/import/csv.ts'
import { run } from '../harness/command.ts'
import { contactsIn as listedIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { runProgram } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'

/** A folder with an empty list. */
async function empty(t: TestContext): Promise<string> {
  const cwd = temporaryFolder(t)
  await (await storeAt(join(cwd, 'data', 'waitlist.db'))).close()
  return cwd
}

const imported = (t: TestContext, cwd: string, input: string, ...options: string[]) =>
  run(t, cwd, ['import', ...options, '-'], {}, input)

describe('waitlist import', { concurrency: true }, () => {
  test('what would be done, and what was; bad lines by number, without a word of the people', async t => {
    const cwd = await empty(t)
    const file =
      'Email Address;First Name;Last Name;Since\r\nada@example.com;Ada;Lovelace;2025-01-02 03:04:05\r\n' +
      'zebulon;Zebulon;Quixote;\r\nADA@example.com;Again;;\r\n=quixote@example.com;\x1b[2J;;\r\n'
    const map = ['email=Email Address', 'name=First Name+Last Name', 'createdAt=Since'].flatMap(each => ['--map', each])
    const dry = await imported(t, cwd, file, ...map, '--dry-run')
    assert.equal(dry.stdout, '1 would be added, 1 on the list before, 0 erased before, 2 not valid.\n')
    assert.deepEqual(listedIn(join(cwd, 'data/waitlist.db')), [], 'a dry run writes nothing')
    assert.deepEqual(await imported(t, cwd, file, ...map), {
      code: 1,
      stdout: '1 added, 1 on the list before, 0 erased before, 2 not valid.\n',
      stderr:
        'waitlist: 2 lines are not valid:\n  - line 3: email must be a valid email address\n' +
        '  - line 5: name must not contain control characters\n',
    })
    assert.match((await run(t, cwd, ['list'])).stdout, /\n2025-01-02T03:04:05Z +listed +Ada Lovelace +ada@/)
  })

  test('a column that may say who must not be mailed is refused, unless it is mapped or ignored', async t => {
    const cwd = await empty(t)
    for (const column of [
      'E-mail status',
      'Unsubscribed',
      'Bounced',
      'opt-out',
      'Subscribed',
      'state',
      'Do not mail',
    ]) {
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
      assert.deepEqual([code, stderr], [0, 'The part of each address before the @ is taken as the name.\n'])
    }
    assert.match((await run(t, cwd, ['list'])).stdout, /cyd +cyd@.*\n.*bob +bob@.*\n.*ada +ada@/)
  })

  test('without a list it says so, and makes none', async t => {
    const cwd = temporaryFolder(t)
    const { code, stderr } = await imported(t, cwd, 'name,email\nAda,ada@example.com\n')
    assert.equal(code, 1)
    assert.match(stderr, /There is no database at data\/waitlist\.db\./)
    assert.equal(existsSync(join(cwd, 'data')), false)
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
    assert.match(stdout, /^1 added, 1 on the list before.*\nThe running service announces them\.\n$/)
    await receiver.arrived(1)
    assert.deepEqual(
      receiver.received.map(({ json }) => json.data.email),
      ['ada@example.com'],
    )
    assert.equal(await service.end('SIGTERM'), 0)
  })
})

/** What is read of a file, which arrives in parts of so many bytes: by line the contact, or what is wrong with it. */
async function read(content: string | Buffer, options: ColumnOptions = {}, part = 7) {
  const bytes = Buffer.from(content)
  const parts = Array.from({ length: Math.ceil(bytes.length / part) }, (_, i) =>
    bytes.subarray(i * part, (i + 1) * part),
  )
  return readFile('-', options, Readable.from(parts))
}

async function readFile(file: string, options: ColumnOptions = {}, stdin = Readable.from([])) {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const found = await Array.fromAsync(contactsIn(file, options, { stdin, stdout: nowhere, stderr: nowhere }))
  return found.map(({ line, contact }) => {
    if ('problem' in contact) return [line, contact.problem]
    const { signup, createdAt } = contact
    return [line, signup.name, signup.email, ...(createdAt ? [createdAt.toISOString()] : [])]
  })
}

test('comma, semicolon and tab; quotes, empty lines, line breaks of any kind, and none at the end', async () => {
  const lines = [
    ['Name', 'Email', 'Notes'],
    ['"Ada ""Countess"", Lovelace; etc."', 'ada@example.com', '"a, b"'],
    [''],
    ['Says "hi"', 'cyd@example.com', 'x'],
    ['Dot', 'dot@example.com'],
    [' Adä 🦀', ' d@example.com', ''],
  ]
  for (const part of [1, 7, 1_000]) {
    for (const delimiter of [',', ';', '\t']) {
      for (const end of ['\n', '\r\n', '\r']) {
        assert.deepEqual(await read(lines.map(fields => fields.join(delimiter)).join(end), {}, part), [
          [2, 'Ada "Countess", Lovelace; etc.', 'ada@example.com'],
          [4, 'Says "hi"', 'cyd@example.com'],
          [5, 'it has 2 columns, and the heading 3'],
          [6, 'Adä 🦀', 'd@example.com'],
        ])
      }
    }
  }
  assert.deepEqual(await read('\uFEFFname,email\nAda,a@example.com'), [[2, 'Ada', 'a@example.com']])
})

test('what cannot be read, or is not clear, is refused with a sentence', async t => {
  const folder = temporaryFolder(t)
  const long = 'x'.repeat(1_100_000)
  writeFileSync(join(folder, 'long.csv'), `name,email\nAda,a@example.com\n${long},b@example.com\n`)
  const refused: readonly (readonly [() => Promise<unknown>, RegExp])[] = [
    [() => readFile(folder), /cannot be read: EISDIR/],
    [() => readFile(join(folder, 'none.csv')), /none\.csv cannot be read: ENOENT: no such file/],
    [() => readFile(join(folder, 'long.csv')), /long\.csv cannot be read.*: Max Record Size: .* at line 3$/],
    [() => read('\n\n'), /^OperatorError: Standard input is empty\.$/],
    [() => read(Buffer.from('Name,Email\nAdä,a@example.com', 'latin1')), /is not UTF-8 text\. Save it as UTF-8/],
    [() => read(Buffer.from('\uFEFFName,Email\nAda,a@example.com', 'utf16le')), /is not UTF-8 text/],
    [() => read('name,email\nAda,"ada@example.com\nBob,b@example.com\n'), /cannot be read.*: Quote Not Closed: /],
    [() => read('[{"name":"Ada","email":"ada@example.com"}]'), /The first line must be a heading/],
    [() => read('Email,First Name\n'), /The first line must be a heading that has the columns email and name/],
    [
      () => read('name,email', { map: { nmae: 'name', email: 'email' } }),
      /no nmae\. There are name, email, createdAt, utm/,
    ],
    [
      () => read('name,email', { map: { name: 'name', email: 'Mail' } }),
      /^OperatorError: The heading has no column Mail\.$/,
    ],
    [() => read('name,email', { ignore: ['Status'] }), /no column Status/],
    [() => read('name,email', { map: { name: 'name' } }), /--map email=/],
  ]
  for (const [reading, sentence] of refused) await assert.rejects(reading, sentence)
  await assert.rejects(read('Ada Lovelace,ada@example.com'), error => {
    assert.doesNotMatch(String(error), /Lovelace|ada@/, 'without a heading, the first line is a person')
    return true
  })
})

test('columns by their headings, whatever the case, or by --map alone', async () => {
  const file = 'EMAIL,createdat,Name,First,La+st,ref\na@example.com,2025-01-02,Ada,A,B,hn\n'
  assert.deepEqual(await read(file), [[2, 'Ada', 'a@example.com', '2025-01-02T00:00:00.000Z']])
  assert.deepEqual(await read(file, { map: { email: 'EMAIL', name: 'First + Name' } }), [[2, 'A Ada', 'a@example.com']])
  assert.deepEqual(await read(file, { map: { email: 'EMAIL', name: 'La+st' } }), [[2, 'B', 'a@example.com']])
  assert.deepEqual(await read(file, { map: { email: 'EMAIL' } }), [[2, 'a', 'a@example.com']])
})

test('times are in UTC unless they have an offset; what is empty is no time', async () => {
  for (const [time, expected] of Object.entries({
    '': undefined,
    '2025-01-02 03:04': '2025-01-02T03:04:00.000Z',
    '2025-01-02 03:04:05 UTC': '2025-01-02T03:04:05.000Z',
    '2025-01-02T03:04:05.678901Z': '2025-01-02T03:04:05.678Z',
    '2025-01-02T03:04:05+0530': '2025-01-01T21:34:05.000Z',
    '2025-01-02T03:04:05-05': '2025-01-02T08:04:05.000Z',
  })) {
    const [[, , , read_] = []] = await read(`name,email,createdAt\nAda,a@example.com,${time}`)
    assert.equal(read_, expected, time)
  }
  for (const bad of ['2025-02-30', '01/02/2025 03:04', '1969-12-31', '9999-01-01', 'x', '2025-01-02T25:00']) {
    const [[, problem] = []] = await read(`name,email,createdAt\nAda,a@example.com,${bad}`)
    assert.match(String(problem), /^createdAt must be a time such as/, bad)
  }
})

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { contactsIn, sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { runCommand as run, runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const holds = { above: 0, window: 3_600_000, suspicious: false }

/** A folder with `data/waitlist.db`, where the program looks by default: Ada is listed, the others are held. */
async function scene(t: TestContext) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const before = await storeAt(path)
  await before.admit(signup('Ada', 'ada@example.com'))
  await before.close()
  const store = await storeAt(path, { holds })
  for (const who of ['Bob', 'Cyd \u202E\u001b[31m', 'Dot', 'Eve']) {
    await store.admit(signup(who.replace('\u001b', ''), `${who.slice(0, 3).toLowerCase()}@spam.example`))
  }
  await store.close()
  const sql = sqlOn(path)
  await sql("update contact set reason = 'same-mailbox', created_at = 0 where email like 'bob%'")
  const states = () => contactsIn(path).map(({ email, state }) => `${email.slice(0, 3)} ${state}`)
  return { cwd, path, sql, states }
}

const unheld = ['ada listed', 'bob held', 'cyd held', 'dot held', 'eve held']

describe('waitlist held', { concurrency: true }, () => {
  test('says how many are held, for what and since when, and lists those who were added last', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['held', '--limit', '2'])
    assert.deepEqual([code, stderr], [0, ''])
    const [total, , reasons, ...rest] = stdout.split('\n')
    assert.equal(total, '4 signups are held, the first since 1970-01-01T00:00:00Z.')
    assert.match(reasons!, /^reason +signups$/)
    const text = rest.join('\n')
    assert.match(text, /^above-limit +3\nsame-mailbox +1\n\n/)
    assert.match(
      text,
      /\nsigned up +reason +name +address\n\S+Z +above-limit +Eve +eve@spam\.example\n\S+Z +above-limit +Dot +dot@/,
    )
    assert.match(text, /\nThere are more than these 2, which were added last; --limit shows them\.\n$/)
    assert.doesNotMatch(stdout, /[\u202E\u001b]/)
    const one = await run(t, cwd, ['held', '--before', '1971-01-01'])
    assert.match(one.stdout, /^1 signup is held, /)
    assert.doesNotMatch(one.stdout, /above-limit/)
  })

  test('json is one object with the counts and the contacts that were added last; nobody held is no failure', async t => {
    const { cwd } = await scene(t)
    const { code, stdout } = await run(t, cwd, ['held', '--json', '--reason', 'same-mailbox'])
    assert.equal(code, 0)
    const { contacts, ...counts } = JSON.parse(stdout)
    assert.deepEqual(counts, {
      total: 1,
      since: '1970-01-01T00:00:00.000Z',
      reasons: [{ reason: 'same-mailbox', count: 1 }],
    })
    const [{ id, ...bob }, ...others] = contacts
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.deepEqual(bob, {
      name: 'Bob',
      email: 'bob@spam.example',
      state: 'held',
      createdAt: '1970-01-01T00:00:00.000Z',
      reason: 'same-mailbox',
    })
    assert.deepEqual(others, [])
    const none = await run(t, cwd, ['held', '--search', 'sub.spam.example'])
    assert.deepEqual(none, { code: 0, stdout: 'No such signup is held.\n', stderr: '' })
  })

  test('the other commands know who is held, and why', { skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }, async t => {
    const { cwd } = await scene(t)
    const list = await run(t, cwd, ['list', '--state', 'held', '--json', '--until', '1971-01-01'])
    const { email, state, reason } = JSON.parse(list.stdout)
    assert.deepEqual([email, state, reason], ['bob@spam.example', 'held', 'same-mailbox'])
    const show = await run(t, cwd, ['show', 'bob@spam.example'])
    assert.match(show.stdout, /\nstate +held: nobody is told of it until it is released\nreason +same-mailbox\n/)
    const person = JSON.parse((await run(t, cwd, ['person', 'bob@spam.example'])).stdout)
    assert.deepEqual([person.contact.state, person.contact.reason, person.copies], ['held', 'same-mailbox', []])
    const csv = await run(t, cwd, ['export', '--no-bom', '--state', 'held', '--until', '1971-01-01'])
    assert.match(csv.stdout, /\r\n[^,]+,Bob,bob@spam\.example,held:same-mailbox,1970-01-01T00:00:00\.000Z,{10}\r\n$/)
    const all = await run(t, cwd, ['export', '--format', 'json'])
    assert.equal(all.stdout.trimEnd().split('\n').length, 5)
    assert.equal(all.stderr, '4 of them are held, as column state says; --state listed leaves them out.\n')
    assert.equal(csv.stderr, '')
    const { total, held, last30Days } = JSON.parse((await run(t, cwd, ['stats', '--json'])).stdout)
    assert.deepEqual([total, held, last30Days], [1, 4, 1])
    assert.match((await run(t, cwd, ['stats'])).stdout, /\n1 signed up: 1 listed, 4 more held\n/)
    const remove = await run(t, cwd, ['remove', '--yes', 'bob@spam.example'])
    assert.deepEqual(
      [remove.code, remove.stdout],
      [0, 'bob@spam.example was erased: held, signed up 1970-01-01T00:00:00Z, 0 deliveries.\n'],
    )
    assert.match((await run(t, cwd, ['held'])).stdout, /^3 signups are held/)
  })

  test('a command line that does not say who, or says it twice, is misused', async t => {
    const { cwd, states } = await scene(t)
    for (const args of [['release'], ['discard', '--yes', '--all', '--before', '1h']]) {
      const { code, stdout, stderr } = await run(t, cwd, args)
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
      assert.match(
        stderr,
        /^waitlist: Say what to (?:release|discard): addresses, --all, or --reason, --search and --before/,
      )
    }
    for (const args of [
      ['release', 'bob'],
      ['release', '--reason', 'spam'],
      ['held', '--limit', '10001'],
    ]) {
      assert.equal((await run(t, cwd, args)).code, 2, args.join(' '))
    }
    assert.deepEqual(states(), unheld)
  })
})

describe('waitlist release', { concurrency: true }, () => {
  test('beside a running service, the webhook is told of the released alone; who is not held is named', async t => {
    const { cwd, states } = await scene(t)
    const told: string[] = []
    const receiver = await startReceiver(t, ({ text }) => {
      told.push(JSON.parse(text).data.email)
      return { status: 204 }
    })
    const env = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret, PORT: '0', HOST: '127.0.0.1' }
    await runProgram(t, env, { cwd })
    const some = await run(t, cwd, ['release', 'DOT@spam.example', 'ada@example.com'], env)
    assert.deepEqual([some.code, some.stdout], [1, '1 signup was released.\n'])
    assert.equal(some.stderr, 'waitlist: not all could be released:\n  - ada@example.com is not held.\n')
    await until(() => told.length === 1)
    const all = await run(t, cwd, ['release', '--all'], env)
    assert.deepEqual(all, { code: 0, stdout: '3 signups were released.\n', stderr: '' })
    await until(() => told.length === 4)
    assert.equal(told[0], 'dot@spam.example')
    assert.deepEqual(told.slice(1).toSorted(), ['bob@spam.example', 'cyd@spam.example', 'eve@spam.example'])
    assert.ok(states().every(each => each.endsWith(' listed')))
    const again = await run(t, cwd, ['release', '--all'], env)
    assert.deepEqual(again, { code: 0, stdout: 'Nothing is held.\n', stderr: '' })
    const nobody = await run(t, cwd, ['release', '--search', 'casino'], env)
    assert.deepEqual(nobody, { code: 1, stdout: '', stderr: 'waitlist: no such signup is held.\n' })
  })

  test('with a provider they are pending, for its hand-over; by reason and time the others stay', async t => {
    const { cwd, states, sql } = await scene(t)
    const env = { PROVIDER: 'loops', LOOPS_API_KEY: 'k' }
    const { code, stdout } = await run(t, cwd, ['release', '--reason', 'same-mailbox', '--before', '1d'], env)
    assert.deepEqual(
      [code, stdout],
      [
        0,
        '1 signup was released.\nThe running service hands them over to Loops, in the order in which they signed up.\n',
      ],
    )
    assert.deepEqual(states(), ['ada listed', 'bob pending', ...unheld.slice(2)])
    assert.deepEqual(
      (await sql('select destination from delivery')).map(({ destination }) => destination),
      ['loops'],
    )
  })
})

describe('waitlist discard', { concurrency: true }, () => {
  test('--yes deletes them; without it and a terminal nothing happens', async t => {
    const { cwd, states } = await scene(t)
    const asked = await run(t, cwd, ['discard', '--all'])
    assert.deepEqual([asked.code, asked.stdout], [2, ''])
    assert.match(asked.stderr, /^waitlist: There is no terminal to ask on\. .*--yes/)
    assert.deepEqual(states(), unheld)
    const one = await run(t, cwd, ['discard', '--yes', 'eve@spam.example'])
    assert.deepEqual(one, { code: 0, stdout: '1 signup was discarded.\n', stderr: '' })
    const found = await run(t, cwd, ['discard', '--yes', '--search', 'CYD'])
    assert.deepEqual(found, { code: 0, stdout: '1 signup was discarded.\n', stderr: '' })
    const all = await run(t, cwd, ['discard', '--yes', '--all'])
    assert.deepEqual(all, { code: 0, stdout: '2 signups were discarded.\n', stderr: '' })
    assert.deepEqual(states(), ['ada listed'])
  })
})

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run } from '../harness/command.ts'
import { contactsIn, sqlOn } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

/** A folder with `data/waitlist.db`, where the program looks by default: four are listed, and one is held. */
async function scene(t: TestContext) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await storeAt(path)
  for (const who of ['ada', 'bob', 'cyd', 'dot', 'eve']) {
    await store.admit(signup(`\u202E${who}`, `${who}@${who < 'c' ? 'one' : 'two'}.example`))
  }
  await store.close()
  const sql = sqlOn(path)
  await sql(
    "update contact set state = 'held', reason = 'unverified', event_name = null, event_at = null where name like '%dot'",
  )
  const states = () => contactsIn(path).map(({ email, state }) => `${email.slice(0, 3)} ${state}`)
  return { cwd, sql, states, run: (...args: string[]) => run(t, cwd, args) }
}

/** The same with a webhook, if the settings of a command name it. */
async function notified(t: TestContext) {
  const { cwd, sql } = await scene(t)
  const env = { WEBHOOK_URL: 'http://localhost:9/', WEBHOOK_SECRET: webhookSecret }
  return { sql, env, run: (env: Record<string, string>, ...args: string[]) => run(t, cwd, args, env) }
}

const untouched = ['ada listed', 'bob listed', 'cyd listed', 'dot held', 'eve listed']
const NOBODY_TELLS =
  'No mail, webhook or automation is set that notifies them: the codes are in waitlist export --state invited.\n'

/** A process for each command, of which there are many. */
const slowly = { skip: !isSlow && 'it runs in .ci/run' }

describe('waitlist invite', { concurrency: true }, () => {
  test('--dry-run names who would be invited, and invites nobody', async t => {
    const { run, states } = await scene(t)
    const { code, stdout, stderr } = await run('invite', '--next', '3', '--dry-run')
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(
      stdout,
      /^signed up +name +address +source\n\S+Z +ada +ada@one\.example\n\S+Z +bob .*\n\S+Z +cyd .*\n3 people would be invited\.\n$/,
    )
    assert.doesNotMatch(stdout, /\u202E/)
    assert.match(
      (await run('invite', '--search', 'two.example', '--dry-run')).stdout,
      /\n2 people would be invited\.\n$/,
    )
    assert.deepEqual(states(), untouched)
  })

  test('--again: those who have not redeemed are sent it again, and the others are told', async t => {
    const { sql, run, env } = await notified(t)
    const given = ['ada@one.example', 'bob@one.example', 'eve@two.example']
    assert.equal((await run(env, 'invite', ...given.slice(0, 2), '--yes')).code, 0)
    await sql("update delivery set state = 'delivered'")
    await sql("update contact set redeemed_at = 1 where name like '%bob'")
    const { code, stdout, stderr } = await run(env, 'invite', '--again', ...given)
    assert.deepEqual([code, stdout], [1, '1 person was invited again.\n1 person has redeemed already.\n'])
    assert.match(stderr, /not all were invited before:\n.*eve@two\.example is listed\./)
    assert.deepEqual(
      (await sql("select state from delivery where kind = 'invited' order by contact")).map(({ state }) => state),
      ['waiting', 'delivered'],
    )
    assert.equal((await run({}, 'invite', '--again', given[0]!)).code, 1, 'there is nobody to send it')
    assert.equal((await run(env, 'invite', '--again', '--next', '1')).code, 2)
  })

  test('the next ones, then the next ones; without --yes and a terminal nobody', async t => {
    const { run, states } = await scene(t)
    const asked = await run('invite', '--next', '2')
    assert.deepEqual([asked.code, asked.stdout], [2, ''])
    assert.match(asked.stderr, /There is no terminal to ask on; --yes/)
    assert.deepEqual(states(), untouched)
    const { code, stdout } = await run('invite', '--next', '2', '--yes')
    assert.deepEqual([code, stdout], [0, `2 people were invited. ${NOBODY_TELLS}`])
    assert.deepEqual(states(), ['ada invited', 'bob invited', ...untouched.slice(2)])
    assert.equal((await run('invite', '--next', '9', '--yes')).stdout, `2 people were invited. ${NOBODY_TELLS}`)
    assert.equal((await run('invite', '--next', '9', '--yes')).code, 1, 'nobody is left')
    assert.deepEqual(states(), ['ada invited', 'bob invited', 'cyd invited', 'dot held', 'eve invited'])
  })

  test(
    'addresses, and those of a file; who cannot be invited is named, and who was invited before is no mistake',
    slowly,
    async t => {
      const { cwd, run, states } = await scene(t)
      writeFileSync(join(cwd, 'first.txt'), '\uFEFFBOB@one.example\r\n\r\n  eve@two.example  ')
      assert.equal((await run('invite', '--yes', '--file', 'first.txt')).code, 0)
      const again = await run('invite', '--yes', '--file', 'first.txt')
      assert.deepEqual([again.code, again.stdout], [0, '2 people were invited before.\n'])
      const some = await run(
        'invite',
        '--yes',
        'ada@one.example',
        'dot@two.example',
        'bob@one.example',
        'no@one.example',
      )
      assert.equal(some.code, 1)
      assert.equal(some.stdout, `1 person was invited before.\n1 person was invited. ${NOBODY_TELLS}`)
      assert.match(
        some.stderr,
        /not all could be invited:\n {2}- dot@two\.example is held\.\n {2}- no@one\.example is not on the list\.\n$/,
      )
      writeFileSync(join(cwd, 'wrong.txt'), 'cyd@two.example\nno address\n')
      const wrong = await run('invite', '--yes', '--file', 'wrong.txt')
      assert.deepEqual(
        [wrong.code, wrong.stderr],
        [1, 'waitlist: Line 2 of wrong.txt is not an email address. Nobody was invited.\n'],
      )
      assert.deepEqual(states(), ['ada invited', 'bob invited', 'cyd listed', 'dot held', 'eve invited'])
    },
  )

  test('whom it is about is said in one way', slowly, async t => {
    const { run, states } = await scene(t)
    for (const args of [
      [],
      ['ada@one.example', '--next', '1'],
      ['--file', 'x', '--search', 'one.example'],
      ['--next', '0'],
    ]) {
      const { code, stderr } = await run('invite', '--yes', ...args)
      assert.equal(code, 2, args.join(' '))
      assert.notEqual(stderr, '')
    }
    assert.deepEqual(states(), untouched)
  })

  test('the running service tells them once, under the name that is set, with the code; none of it is logged', async t => {
    const { cwd, sql } = await scene(t)
    const told: { type: string; id: string; code: string | undefined; email: string }[] = []
    const receiver = await startReceiver(t, ({ json, headers }) => {
      const { code, email } = json.data as { code?: string; email: string }
      told.push({ type: json.type as string, id: headers['webhook-id']!, code, email })
      return { status: 204 }
    })
    const env = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret, INVITED_EVENT_NAME: 'come.in' }
    const service = await runProgram(t, { ...env, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0' }, { cwd })
    const { stdout } = await run(t, cwd, ['invite', '--next', '2', '--yes'], env)
    assert.equal(stdout, '2 people were invited. The running service notifies them.\n')
    await until(() => told.length === 2)
    const rows = await sql('select id, email, code from contact where code is not null order by number')
    assert.deepEqual(
      told.toSorted((a, b) => (a.email < b.email ? -1 : 1)),
      rows.map(({ id, email, code }) => ({ type: 'come.in', id: `inv_${id}`, code, email })),
    )
    const states = "select 1 from delivery where kind = 'invited' and state = 'delivered'"
    await until(async () => (await sql(states)).length === 2)
    assert.equal(await service.end('SIGTERM'), 0)
    const log = service.stdout() + service.stderr()
    for (const { code } of rows) assert.ok(!log.includes(code as string), 'a code is never logged')
  })

  test('show, list and stats know it; an export can be imported elsewhere, and is the same', slowly, async t => {
    const { cwd, run, sql } = await scene(t)
    await run('invite', '--next', '1', '--yes')
    const [{ code } = {}] = (await sql('select code from contact where code is not null')) as { code: string }[]
    await sql(`update contact set redeemed_at = ${Date.UTC(2026, 0, 1)} where code is not null`)
    const shown = await run('show', 'ada@one.example')
    assert.match(shown.stdout, /\naddress +ada@one\.example\nstate +invited\n/)
    assert.match(
      shown.stdout,
      new RegExp(`\\ninvited +\\S+Z, waitlist\\.invited, inv_\\S+\\ncode +${code}\\nredeemed +2026-01-01T00:00:00Z\\n`),
    )
    assert.equal((await run('show')).code, 2)
    assert.match((await run('list', '--state', 'invited')).stdout, /invited +ada/)
    const stats = JSON.parse((await run('stats', '--json')).stdout)
    assert.deepEqual([stats.total, stats.listed, stats.invited, stats.redeemed, stats.held], [4, 3, 1, 1, 1])
    const person = JSON.parse((await run('show', '--json', 'ada@one.example')).stdout)
    assert.deepEqual([person.contact.code, person.contact.invitation.name], [code, 'waitlist.invited'])
    assert.equal((await run('export', '--json', '--output', 'list.jsonl')).code, 0)
    const there = (...args: string[]) => runAt(t, cwd, join(cwd, 'other.db'), args)
    assert.match((await there('import', 'list.jsonl')).stdout, /^5 added/)
    await there('export', '--json', '--output', 'again.jsonl')
    const text = readFileSync(join(cwd, 'list.jsonl'), 'utf8')
    assert.ok(text.includes(code!) && text.includes('2026-01-01T00:00:00.000Z'))
    assert.equal(readFileSync(join(cwd, 'again.jsonl'), 'utf8'), text)
  })

  test('an import refuses an invitation that is none', slowly, async t => {
    const { cwd, run } = await scene(t)
    const ada = {
      name: 'Zoe',
      email: 'zoe@example.com',
      state: 'invited',
      code: 'c0deAbcdefgh-jklm_opqr',
      invitedAt: '2026-01-01',
    }
    const lines = [
      { ...ada, code: 'short' },
      { ...ada, invitedAt: null },
      { ...ada, redeemedAt: 'soon' },
      { ...ada, state: 'listed' },
    ]
    writeFileSync(join(cwd, 'bad.jsonl'), lines.map(line => `${JSON.stringify(line)}\n`).join(''))
    const { code, stderr } = await run('import', 'bad.jsonl')
    assert.equal(code, 1)
    assert.match(
      stderr,
      /line 1: code must be.*\n.*line 2: invitedAt must.*\n.*line 3: redeemedAt must.*\n.*line 4: invitedAt, code and/,
    )
    assert.ok(!stderr.includes(ada.code))
  })
})

const runAt = (t: TestContext, cwd: string, path: string, args: string[]) =>
  run(t, cwd, args, { DATABASE_URL: `sqlite:${path}` })

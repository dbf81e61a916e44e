import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run } from '../harness/command.ts'
import { contactsIn, sqlOn } from '../harness/database.ts'
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

const untouched = ['ada listed', 'bob listed', 'cyd listed', 'dot held', 'eve listed']
const NOTE =
  'No mail, webhook or automation is set that notifies them: the codes are in waitlist export --state invited.\n'

describe('waitlist invite', { concurrency: true }, () => {
  test('--dry-run names who would be invited, and invites nobody', async t => {
    const { run, states } = await scene(t)
    const { code, stdout, stderr } = await run('invite', '--next', '3', '--dry-run')
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(
      stdout,
      /^signed up .*\n\S+Z +listed +ada +ada@one\.example\n\S+Z +listed +bob .*\n\S+Z +listed +cyd .*\n3 people would be invited\.\n$/,
    )
    assert.doesNotMatch(stdout, /\u202E/)
    const some = await run('invite', '--search', 'two.example', '--dry-run')
    assert.match(some.stdout, /\n2 people would be invited\.\n$/)
    assert.deepEqual(states(), untouched)
  })

  test('--again: those who have not redeemed are sent it again, and the others are told', async t => {
    const { cwd, sql } = await scene(t)
    const env = { WEBHOOK_URL: 'http://localhost:9/', WEBHOOK_SECRET: webhookSecret }
    const invite = (settings: Record<string, string>, ...args: string[]) => run(t, cwd, ['invite', ...args], settings)
    const given = ['ada@one.example', 'bob@one.example', 'eve@two.example']
    assert.equal((await invite(env, ...given.slice(0, 2), '--yes')).code, 0)
    await sql("update delivery set state = 'delivered'")
    await sql("update contact set redeemed_at = 1 where name like '%bob'")
    const { code, stdout, stderr } = await invite(env, '--again', ...given)
    assert.deepEqual([code, stdout], [1, 'Invited again: 1 person.\nRedeemed already: 1 person.\n'])
    assert.match(stderr, /not all were invited before:\n.*eve@two\.example is listed\./)
    assert.deepEqual(
      (await sql("select state from delivery where kind = 'invited' order by contact")).map(({ state }) => state),
      ['waiting', 'delivered'],
    )
    assert.equal((await invite({}, '--again', given[0]!)).code, 1, 'there is nobody to send it')
    assert.equal((await invite(env, '--again', '--next', '1')).code, 2)
  })

  test('the next ones, then the next ones; without --yes and a terminal nobody', async t => {
    const { run, states } = await scene(t)
    const asked = await run('invite', '--next', '2')
    assert.deepEqual([asked.code, asked.stdout], [2, ''])
    assert.match(asked.stderr, /There is no terminal to ask on; --yes/)
    for (const args of [[], ['ada@one.example', '--next', '1'], ['--next', '0']]) {
      assert.equal((await run('invite', '--yes', ...args)).code, 2, args.join(' '))
    }
    assert.deepEqual(states(), untouched)
    const { code, stdout } = await run('invite', '--next', '2', '--yes')
    assert.deepEqual([code, stdout], [0, `Invited: 2 people. ${NOTE}`])
    assert.deepEqual(states(), ['ada invited', 'bob invited', ...untouched.slice(2)])
    assert.equal((await run('invite', '--next', '9', '--yes')).stdout, `Invited: 2 people. ${NOTE}`)
    assert.equal((await run('invite', '--next', '9', '--yes')).code, 1, 'nobody is left')
    assert.deepEqual(states(), ['ada invited', 'bob invited', 'cyd invited', 'dot held', 'eve invited'])
  })

  test('addresses: who cannot be invited is named, and who was invited before is no mistake', async t => {
    const { run, states } = await scene(t)
    assert.equal((await run('invite', '--yes', 'BOB@one.example')).code, 0)
    const again = await run('invite', '--yes', 'bob@one.example')
    assert.deepEqual([again.code, again.stdout], [0, 'Invited before: 1 person.\n'])
    const some = ['ada@one.example', 'dot@two.example', 'bob@one.example', 'no@one.example']
    assert.deepEqual(await run('invite', '--yes', ...some), {
      code: 1,
      stdout: `Invited before: 1 person.\nInvited: 1 person. ${NOTE}`,
      stderr:
        'waitlist: not all could be invited:\n  - dot@two.example is held.\n  - no@one.example is not on the list.\n',
    })
    assert.deepEqual(states(), ['ada invited', 'bob invited', ...untouched.slice(2)])
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
    assert.equal(stdout, 'Invited: 2 people. The running service notifies them.\n')
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

  test('show, list, stats and export have it', async t => {
    const { run, sql } = await scene(t)
    await run('invite', '--next', '1', '--yes')
    const [{ code } = {}] = (await sql('select code from contact where code is not null')) as { code: string }[]
    await sql(`update contact set redeemed_at = ${Date.UTC(2026, 0, 1)} where code is not null`)
    const shown = await run('show', 'ada@one.example')
    assert.match(shown.stdout, /\naddress +ada@one\.example\nstate +invited\n/)
    assert.match(shown.stdout, new RegExp(`\\ninvited +\\S+Z.*\\ncode +${code}\\nredeemed +2026-01-01T00:00:00Z\\n`))
    assert.match((await run('list', '--state', 'invited')).stdout, /invited +ada/)
    const stats = JSON.parse((await run('stats', '--json')).stdout)
    assert.deepEqual([stats.total, stats.listed, stats.invited, stats.redeemed, stats.held], [4, 3, 1, 1, 1])
    const exported = JSON.parse((await run('export', '--json', '--state', 'invited')).stdout)
    assert.deepEqual([exported.code, exported.redeemedAt], [code, '2026-01-01T00:00:00.000Z'])
  })
})

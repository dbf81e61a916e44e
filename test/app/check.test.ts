import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run } from '../harness/command.ts'
import { sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { listening } from '../harness/port.ts'
import { runProgram } from '../harness/program.ts'
import { say, startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'
import { pairIn } from '../harness/tls.ts'
import { pendingNow } from '../store/place.ts'

const HOUR = 3_600_000
/** Bytes. */
const PAGE = 4_096

/** A list on which somebody waits for the webhook, and nobody answers there. */
async function listed(t: TestContext) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'waitlist.db')
  const store = await storeAt(path, { provider: 'loops', destinations: ['webhook'] })
  await store.settle(await pendingNow(store, 'ada@example.com'), { is: 'listed', joined: true })
  await store.close()
  const env = { DATABASE_URL: `sqlite:${path}` }
  const check = async (more: Record<string, string> = {}) => {
    const { code, stdout } = await run(t, cwd, ['check', '--json'], { ...env, ...more })
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Record<string, string>[] }
    assert.equal(code, ok ? 0 : 1)
    return { ok, told: (what: string) => checks.find(check => check.what === what) }
  }
  return { cwd, path, env, sql: sqlOn(path), check }
}

describe('waitlist check', { concurrency: true }, () => {
  test('says that the list is sound, how much room is left, and what waits since when', async t => {
    const { cwd, env, check } = await listed(t)
    const { ok, told } = await check()
    assert.equal(ok, true)
    assert.match(told('database')!.why!, /waitlist\.db is intact$/)
    assert.match(told('disk')!.why!, /^\d+(\.\d GiB| MiB) left$/)
    const { is, why } = told('waiting for webhook')!
    assert.equal(is, 'note')
    assert.match(why!, /^1, the oldest since \d{4}-.*Z; it is not set, so they go on waiting$/)
    const { code, stdout } = await run(t, cwd, ['check'], env)
    assert.equal(code, 0)
    assert.match(stdout, /^ok {6}database: .* is intact/m)
    assert.deepEqual(await run(t, cwd, ['check', '--quiet'], env), { code: 0, stdout: '', stderr: '' })
  })

  test('fails when somebody waits for more than an hour for a destination that is set', async t => {
    const { sql, check } = await listed(t)
    const webhook = {
      WEBHOOK_URL: 'http://127.0.0.1:1/',
      WEBHOOK_SECRET: 'whsec_bm90aGluZy1pcy1zZWNyZXQtaW4tdGhpcy10ZXN0',
    }
    const waits = async () => (await check(webhook)).told('waiting for webhook')!.is
    await sql(`update contact set event_at = event_at - ${0.9 * HOUR}`)
    assert.equal(await waits(), 'ok')
    await sql(`update contact set event_at = event_at - ${2 * HOUR}`)
    assert.equal(await waits(), 'wrong')
  })

  test('fails on a damaged file, and says what to do', async t => {
    const { path, sql, check } = await listed(t)
    const [index] = await sql("select rootpage from sqlite_schema where tbl_name = 'contact' and type = 'index'")
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(PAGE), 0, PAGE, (Number(index!.rootpage) - 1) * PAGE)
    closeSync(file)
    assert.match((await check()).told('database')!.why!, /is damaged: .*\. Stop the service and restore a backup/s)
  })

  test('sends the webhook, the chats and the owner something with --send-test alone', async t => {
    const { cwd, env } = await listed(t)
    const receiver = await startReceiver(t, () => say({ status: 204 }))
    const set = {
      ...{ ...env, WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret },
      ...{ SLACK_WEBHOOK_URL: `${receiver.url}/slack`, DISCORD_WEBHOOK_URL: `${receiver.url}/discord` },
    }
    for (const [args, sent] of [
      [['check'], 0],
      [['check', '--send-test'], 3],
    ] as const) {
      const { stdout } = await run(t, cwd, args, set)
      for (const name of ['webhook', 'slack', 'discord'])
        assert.match(stdout, new RegExp(`^(ok|wrong) +${name}: `, 'm'))
      assert.equal(receiver.received.length, sent)
    }
  })

  test('goes to the public address as a visitor does', async t => {
    const { cwd, env, check } = await listed(t)
    const program = await runProgram(t, { ...env, HOST: '127.0.0.1', PORT: '0' }, { cwd })
    const trial = async (BASE_URL: string) => {
      const { ok, told } = await check({ BASE_URL })
      const { is, why } = told('public address')!
      assert.equal(ok, is === 'ok')
      return `${is}: ${why}`
    }
    assert.equal(await trial(program.baseUrl), `ok: ${program.baseUrl} is reached`)
    const other = await listening(
      t,
      createServer((_, response) => void response.end('<!doctype html>')),
    )
    assert.match(await trial(other), /^wrong: .* answers 200, and not as a healthy service does$/)
    assert.equal(await program.end('SIGTERM'), 0)
    assert.match(await trial(program.baseUrl), /^wrong: .* is not reached: connect ECONNREFUSED/)
  })

  test('a provider that is down does not answer; one that refuses the key says so', async t => {
    const { check } = await listed(t)
    let status = 503
    const receiver = await startReceiver(t, () => say({ status }))
    const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'key', LOOPS_BASE_URL: receiver.url }
    const trial = async () => {
      const { ok, told } = await check(loops)
      const { is, why } = told('provider loops')!
      assert.equal(ok, is === 'ok')
      return `${is}: ${why}`
    }
    assert.match(await trial(), /^wrong: does not answer: look at .*: answered with 503$/)
    status = 401
    assert.match(await trial(), /^wrong: look at .*: answered with 401$/)
    status = 200
    assert.equal(await trial(), 'ok: the key and the settings are accepted')
  })

  test('who is held and what was abandoned is worth a note each, and no failure', async t => {
    const { sql, check } = await listed(t)
    await sql("update delivery set state = 'abandoned', settled_at = due_at")
    await sql(
      "insert into contact (id, name, email, email_key, state, reason, created_at) values (format('%036d', 7), 'Eve', 'e@x.example', 'e@x.example', 'held', 'unverified', 60000)",
    )
    const { ok, told } = await check()
    assert.deepEqual([ok, told('held signups')!.is, told('abandoned')!.is], [true, 'note', 'note'])
    assert.equal(told('held signups')!.why, '1; list --state held shows them')
    assert.match(told('abandoned')!.why!, /^1 for webhook; deliveries --state abandoned says why/)
  })
})

// By itself, since it sets the clock.
test('reads the files that are set: a certificate that has expired, and mistakes', async t => {
  const { cwd, check } = await listed(t)
  const write = (name: string, content: string | Buffer) => {
    writeFileSync(join(cwd, name), content)
    return join(cwd, name)
  }
  const { cert, env } = pairIn(t)
  const expires = new X509Certificate(readFileSync(cert)).validToDate.getTime()
  const trial = async (days: number, domain: string, sentence: string) => {
    t.mock.timers.enable({ apis: ['Date'], now: expires - days * 24 * HOUR })
    const { ok, told } = await check({
      ...env,
      ...{ BLOCKED_DOMAINS_FILE: write('domains.txt', domain) },
      MESSAGES_FILE: write('messages.json', JSON.stringify({ de: { [sentence]: 'x' } })),
    })
    t.mock.timers.reset()
    return [ok, ...['certificate', 'email domains', 'messages'].map(what => told(what)!.is)]
  }
  assert.deepEqual(await trial(2, 'spam.example', 'new'), [true, 'ok', 'ok', 'ok'])
  assert.deepEqual(await trial(-2, 'spam', 'nwe'), [false, 'wrong', 'wrong', 'wrong'])
})

test('without a list check says so, and prints only what is wrong when it is quiet', async t => {
  const cwd = temporaryFolder(t)
  const { code, stdout, stderr } = await run(t, cwd, ['check', '--quiet'])
  assert.deepEqual([code, stderr], [1, ''])
  assert.match(stdout, /^wrong {3}database: There is no database at data\/waitlist\.db\. [^\n]*\n$/)
})

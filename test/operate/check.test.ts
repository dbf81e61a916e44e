import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SECRET, startVerifier } from '../challenges/siteverify.fake.ts'
import { run } from '../harness/command.ts'
import { sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { listening } from '../harness/port.ts'
import { complaintsIn, logOf, runProgram, until } from '../harness/program.ts'
import { say, startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'
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
  test('says that what is stored is sound, how much room is left, and what waits since when', async t => {
    const { cwd, env, check } = await listed(t)
    const { ok, told } = await check()
    assert.equal(ok, true)
    assert.match(told('what is stored')!.why!, /^the store is intact, and takes 1 MiB$/)
    assert.match(told('disk')!.why!, /^\d+(\.\d GiB| MiB) left$/)
    assert.deepEqual(told('waiting for webhook'), {
      what: 'waiting for webhook',
      is: 'ok',
      why: '1, the oldest for 0 min; it is not set, so they go on waiting',
    })
    const { code, stdout } = await run(t, cwd, ['check'], env)
    assert.equal(code, 0)
    assert.match(stdout, /^ok {6}what is stored: the store is intact/m)
    assert.deepEqual(await run(t, cwd, ['check', '--quiet'], env), { code: 0, stdout: '', stderr: '' })
  })

  test('fails when somebody waits for more than an hour for a destination that is set', async t => {
    const { sql, check } = await listed(t)
    const webhook = {
      WEBHOOK_URL: 'http://127.0.0.1:1/',
      WEBHOOK_SECRET: 'whsec_bm90aGluZy1pcy1zZWNyZXQtaW4tdGhpcy10ZXN0',
    }
    const waits = async () => (await check(webhook)).told('waiting for webhook')!
    await sql(`update contact set event_at = event_at - ${0.9 * HOUR}`)
    assert.deepEqual([(await waits()).is, (await waits()).why], ['ok', '1, the oldest for 54 min'])
    await sql(`update contact set event_at = event_at - ${2 * HOUR}`)
    assert.deepEqual([(await waits()).is, (await waits()).why], ['wrong', '1, the oldest for 2 h'])
  })

  test('fails on a damaged file, and says what to do', async t => {
    const { path, sql, check } = await listed(t)
    const [index] = await sql("select rootpage from sqlite_schema where tbl_name = 'contact' and type = 'index'")
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(PAGE), 0, PAGE, (Number(index!.rootpage) - 1) * PAGE)
    closeSync(file)
    assert.match(
      (await check()).told('what is stored')!.why!,
      /^it is damaged: .*\. Stop the service and restore a backup/s,
    )
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

  test('tries the secret of a challenge', async t => {
    const verifier = await startVerifier(t, 'turnstile')
    const { check } = await listed(t)
    const challenge = { CHALLENGE: 'turnstile', CHALLENGE_URL: verifier.address }
    const trial = async (secret: string) => {
      const { ok, told } = await check({ ...challenge, CHALLENGE_SECRET: secret })
      const { is, why } = told('challenge turnstile')!
      assert.equal(ok, is === 'ok')
      return `${is}: ${why}`
    }
    assert.equal(await trial(SECRET), 'ok: the settings are good')
    assert.match(
      await trial('another'),
      /^wrong: Turnstile says "invalid-input-secret": CHALLENGE_SECRET must belong to/,
    )
  })

  test('who is held and what was abandoned is worth a note each, and no failure', async t => {
    const { sql, check } = await listed(t)
    await sql("update delivery set state = 'abandoned', settled_at = due_at")
    await sql(
      "insert into contact (id, name, email, email_key, state, reason, created_at) values (format('%036d', 7), 'Eve', 'e@x.example', 'e@x.example', 'held', 'unverified', 60000)",
    )
    const { ok, told } = await check()
    assert.deepEqual([ok, told('held signups')!.is, told('abandoned')!.is], [true, 'note', 'note'])
    assert.match(told('held signups')!.why!, /^1, the first since 1970-01-01T00:01:00Z; list --state held shows them$/)
    assert.match(told('abandoned')!.why!, /^1; deliveries --state abandoned says why/)
  })
})

test('without a list check says so, and prints only what is wrong when it is quiet', async t => {
  const cwd = temporaryFolder(t)
  const { code, stdout, stderr } = await run(t, cwd, ['check', '--quiet'])
  assert.deepEqual([code, stderr], [1, ''])
  assert.match(stdout, /^wrong {3}database: There is no list at data\/waitlist\.db: [^\n]*\n$/)
})

test('a check whose reader is gone is no failure', t => {
  const entry = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
  const command = 'set -o pipefail; "$0" "$1" check --json | true'
  const options = { cwd: temporaryFolder(t), encoding: 'utf8' } as const
  const { stderr, status } = spawnSync('bash', ['-c', command, process.execPath, entry], options)
  assert.deepEqual([status, stderr], [1, ''], 'there is no list')
})

test('what waits for the operator is told at the start', async t => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'waitlist.db')
  const destinations = ['webhook', 'chat']
  const store = await storeAt(path, { provider: 'loops', destinations })
  await store.settle(await pendingNow(store, 'ada@example.com'), { is: 'listed', joined: true })
  await pendingNow(store, 'eve@example.com')
  const [delivery] = await store.claim('chat', 1)
  await store.settle(delivery!, { is: 'abandoned', why: 'HTTP 404' })
  await store.close()

  const program = await runProgram(t, { DATABASE_URL: `sqlite:${path}` }, { cwd: folder })
  const told = () => complaintsIn(logOf(program)).filter(({ msg }) => !String(msg).includes('plain HTTP'))
  await until(() => told().length === 3)
  assert.deepEqual(
    told().map(({ pending, destination, deliveries, abandoned }) => ({ pending, destination, deliveries, abandoned })),
    [
      { pending: 1, destination: undefined, deliveries: undefined, abandoned: undefined },
      { pending: undefined, destination: 'webhook', deliveries: 1, abandoned: undefined },
      { pending: undefined, destination: undefined, deliveries: undefined, abandoned: 1 },
    ],
  )
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { webhook } from '../../src/notify/webhook.ts'
import { joined } from '../delivery/events.ts'
import { temporaryFolder } from '../harness/folder.ts'

const program = fileURLToPath(new URL('../../examples/webhook-receiver/receiver.mjs', import.meta.url))
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`
const soon = () => AbortSignal.timeout(20_000)

/** Runs the example as its reader does, with the file of `folder`, and resolves when it listens. */
async function run(t: TestContext, folder: string, secret: string) {
  const child = spawn(process.execPath, [program], {
    cwd: folder,
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: secret, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  t.after(kill)
  const lines = createInterface({ input: child.stdout })
  const url = await new Promise<string>((resolve, reject) => {
    lines.once('line', line => resolve(line.slice(line.indexOf('http'))))
    exited.then(() => reject(new Error('the example ended')))
  })
  return { url, kill }
}

const stored = (folder: string) => {
  const database = new DatabaseSync(join(folder, 'received.db'), { readOnly: true })
  const rows = database.prepare('select id, type, data from event order by id').all()
  database.close()
  return rows.map(({ id, type, data }) => ({ id, type, data: JSON.parse(String(data)) }))
}

/** Signed as at `at`; the answer's status. */
async function post(url: string, secret: string, body: string, at = new Date(), change = {}): Promise<number> {
  const id = 'evt_1'
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
    ...change,
  }
  const { status } = await fetch(url, { method: 'POST', headers, body })
  return status
}

test('the example receiver stores each event once, also when it is repeated, and after a kill', async t => {
  const folder = temporaryFolder(t)
  const secret = newSecret()
  const first = await run(t, folder, secret)
  const destination = webhook({ url: first.url, secrets: [secret] })
  assert.equal(await destination.check(soon()), null)
  assert.deepEqual(stored(folder), [], 'a try is no event')

  const event = joined(1, { name: 'Zoë "Z" 李' })
  for (let i = 0; i < 2; i++) assert.deepEqual(await destination.deliver(event, soon()), { is: 'delivered' })
  const crowd = Array.from({ length: 20 }, (_, i) => joined(2 + (i % 4)))
  const told = await Promise.all(crowd.map(each => destination.deliver(each, soon())))
  assert.ok(told.every(({ is }) => is === 'delivered'))
  const before = stored(folder)
  assert.deepEqual(
    before.map(({ id }) => id),
    [1, 2, 3, 4, 5].map(number => joined(number).id),
  )
  const { id, name, email } = event.contact
  const data = { id, name, email, createdAt: event.contact.createdAt.toISOString() }
  assert.deepEqual(before[0], { id: event.id, type: 'waitlist.joined', data })

  await first.kill()
  const second = await run(t, folder, secret)
  const again = webhook({ url: second.url, secrets: [newSecret(), secret] })
  for (const number of [1, 6]) assert.deepEqual(await again.deliver(joined(number), soon()), { is: 'delivered' })
  assert.deepEqual(stored(folder).slice(0, 5), before)
  assert.equal(stored(folder).length, 6)
})

test('the example receiver refuses what is not signed now and here, too large, or no POST', async t => {
  const folder = temporaryFolder(t)
  const secret = newSecret()
  const { url } = await run(t, folder, secret)

  const told = await webhook({ url, secrets: [newSecret()] }).deliver(joined(), soon())
  assert.ok(told.is === 'misconfigured' && told.why.includes('401'), JSON.stringify(told))
  const body = '{"type":"waitlist.joined","data":{}}'
  const now = Date.now()
  assert.equal(await post(url, newSecret(), body), 401, 'another secret')
  assert.equal(await post(url, secret, body, new Date(now - 400_000)), 401, 'too old')
  assert.equal(await post(url, secret, body, new Date(now + 400_000)), 401, 'too new')
  assert.equal(await post(url, secret, body, new Date(now), { 'webhook-id': 'evt_2' }), 401, 'another id')
  assert.equal(
    await post(url, secret, body, new Date(now), { 'webhook-timestamp': `${Math.floor(now / 1000) - 9}` }),
    401,
  )
  assert.equal((await fetch(url, { method: 'POST', body })).status, 401, 'no signature')
  assert.equal(await post(url, secret, JSON.stringify({ padding: 'x'.repeat(20_000) })), 413)
  assert.equal(await post(url, secret, JSON.stringify({ padding: 'x'.repeat(5_000_000) })), 413)
  assert.equal((await fetch(url)).status, 405)
  assert.deepEqual(stored(folder), [])

  assert.equal(await post(url, secret, body), 204, 'it still works')
})

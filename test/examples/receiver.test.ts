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
const secret = `whsec_${randomBytes(32).toString('base64')}`
const soon = () => AbortSignal.timeout(20_000)

/** Runs the example as its reader does, with the file of `folder`; resolves when it listens. */
async function run(t: TestContext, folder: string) {
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
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const url = line.slice(line.indexOf('http')) as string
  return { url, destination: webhook({ url, secrets: [secret] }), kill }
}

const stored = (folder: string) => {
  using database = new DatabaseSync(join(folder, 'received.db'), { readOnly: true })
  const rows = database.prepare('select id, type, data from event order by id').all()
  return rows.map(({ id, type, data }) => ({ id, type, data: JSON.parse(String(data)) }))
}

test('the example receiver stores each event once, also when it is repeated, and after a kill', async t => {
  const folder = temporaryFolder(t)
  const first = await run(t, folder)
  assert.equal(await first.destination.check(soon()), null)
  assert.deepEqual(stored(folder), [], 'a try is no event')
  const event = joined(1, { name: 'Zoë "Z" 李' })
  const crowd = [event, event, ...Array.from({ length: 20 }, (_, i) => joined(2 + (i % 4)))]
  const outcomes = await Promise.all(crowd.map(each => first.destination.deliver(each, soon())))
  assert.ok(outcomes.every(({ is }) => is === 'delivered'))
  const before = stored(folder)
  assert.deepEqual(
    before.map(({ id }) => id),
    [1, 2, 3, 4, 5].map(number => joined(number).id),
  )
  const { id, name, email } = event.contact
  const data = { id, name, email, createdAt: event.contact.createdAt.toISOString() }
  assert.deepEqual(before[0], { id: event.id, type: 'waitlist.joined', data })
  await first.kill()
  const second = await run(t, folder)
  assert.deepEqual(await second.destination.deliver(joined(1), soon()), { is: 'delivered' })
  assert.deepEqual(stored(folder), before)
})

test('the example receiver refuses what is not signed now and here, too large, or no POST', async t => {
  const folder = temporaryFolder(t)
  const { url } = await run(t, folder)
  const now = Date.now()
  const json = '{"type":"waitlist.joined","data":{}}'
  async function post(body: string, { key = secret, at = new Date(now), id = 'evt_1' } = {}): Promise<number> {
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': new Webhook(key).sign('evt_1', at, body),
    }
    return (await fetch(url, { method: 'POST', headers, body })).status
  }
  assert.equal(await post(json, { key: `whsec_${randomBytes(32).toString('base64')}` }), 401, 'another secret')
  assert.equal(await post(json, { at: new Date(now - 400_000) }), 401, 'too old')
  assert.equal(await post(json, { at: new Date(now + 400_000) }), 401, 'too new')
  assert.equal(await post(json, { id: 'evt_2' }), 401, 'another id')
  assert.equal((await fetch(url, { method: 'POST', body: json })).status, 401, 'no signature')
  assert.equal(await post(JSON.stringify({ padding: 'x'.repeat(5_000_000) })), 413)
  assert.equal((await fetch(url)).status, 405)
  assert.deepEqual(stored(folder), [])
  assert.equal(await post(json), 204, 'it still works')
})

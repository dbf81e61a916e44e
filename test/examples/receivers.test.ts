import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { webhook } from '../../src/destinations/webhook.ts'
import { joined } from '../contracts/destination.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listening } from '../harness/listening.ts'
import { readRequest } from '../harness/receiver.ts'

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

const sender = (t: TestContext, url: string, secrets: readonly string[]) => {
  const destination = webhook({ url, secrets })
  t.after(destination.close)
  return destination
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

test('the example receiver stores each event once, also when it is repeated, and after a kill', {
  timeout: 60_000,
}, async t => {
  const folder = temporaryFolder(t)
  const secret = newSecret()
  const first = await run(t, folder, secret)
  const destination = sender(t, first.url, [secret])
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
  const again = sender(t, second.url, [newSecret(), secret])
  for (const number of [1, 6]) assert.deepEqual(await again.deliver(joined(number), soon()), { is: 'delivered' })
  assert.deepEqual(stored(folder).slice(0, 5), before)
  assert.equal(stored(folder).length, 6)
})

test('the example receiver refuses what is not signed now and here, too large, or no POST', {
  timeout: 60_000,
}, async t => {
  const folder = temporaryFolder(t)
  const secret = newSecret()
  const { url } = await run(t, folder, secret)

  const told = await sender(t, url, [newSecret()]).deliver(joined(), soon())
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

test('the example receiver says what is missing', { timeout: 30_000 }, async t => {
  const child = spawn(process.execPath, [program], { cwd: temporaryFolder(t), env: { PATH: process.env.PATH } })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', chunk => {
    said += chunk
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 1)
  assert.match(said, /WEBHOOK_SECRET/)
})

const example = (path: string) => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url))

/** It accepts a try and an event that are signed with its secret, as often as they come, and nothing else. */
async function assertVerifies(t: TestContext, url: string, secret: string) {
  const sender = (secrets: string[]) => {
    const destination = webhook({ url, secrets })
    t.after(destination.close)
    return destination
  }
  const rightful = sender([newSecret(), secret])
  assert.equal(await rightful.check(soon()), null)
  const event = joined(1, { name: 'Zoë "Z" 李' })
  for (let i = 0; i < 2; i++) assert.deepEqual(await rightful.deliver(event, soon()), { is: 'delivered' })
  const refused = await sender([newSecret()]).deliver(joined(2), soon())
  assert.ok(refused.is === 'misconfigured' && refused.why.includes('401'), JSON.stringify(refused))
  assert.equal((await fetch(url, { method: 'POST', body: '{"type":"waitlist.joined"}' })).status, 401, 'no signature')
}

test('the example for Express verifies what arrives', { timeout: 30_000 }, async t => {
  const secret = newSecret()
  // Installed under another name, so that no package of production takes it for its own peer.
  const folder = temporaryFolder(t)
  const packages = join(folder, 'node_modules')
  mkdirSync(packages)
  const installed = fileURLToPath(new URL('../../node_modules/', import.meta.url))
  symlinkSync(join(installed, 'express-5'), join(packages, 'express'))
  symlinkSync(join(installed, 'standardwebhooks'), join(packages, 'standardwebhooks'))
  copyFileSync(example('express/receiver.mjs'), join(folder, 'receiver.mjs'))
  const child = spawn(process.execPath, [join(folder, 'receiver.mjs')], {
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: secret, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const lines: string[] = []
  const output = createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  const [first] = (await once(output, 'line')) as [string]
  await assertVerifies(t, first.slice(first.indexOf('http')), secret)
  assert.deepEqual(lines.slice(1), Array(2).fill(`received ${joined(1).id}`))
})

interface Worker {
  fetch(request: Request, env: object): Promise<Response>
}

test('the example for Cloudflare Workers verifies what arrives, and remembers it after its work', async t => {
  const { default: worker } = (await import(example('cloudflare-worker/worker.js'))) as { default: Worker }
  const secret = newSecret()
  const kept = new Map<string, number>()
  const env = {
    WEBHOOK_SECRET: secret,
    EVENTS: {
      get: async (id: string) => (kept.has(id) ? 'received' : null),
      put: async (id: string, _: string, options: { expirationTtl: number }) => kept.set(id, options.expirationTtl),
    },
  }
  const log = t.mock.method(console, 'log', () => {})
  const server = createServer(async (request, response) => {
    const { method, path, headers, text } = await readRequest(request)
    const body = method === 'GET' ? null : text
    const answer = await worker.fetch(new Request(`http://worker${path}`, { method, headers, body }), env)
    response.writeHead(answer.status).end()
  })
  const url = await listening(t, server)
  await assertVerifies(t, url, secret)
  assert.equal((await fetch(url)).status, 405)
  assert.deepEqual([...kept.keys()], [joined(1).id])
  assert.ok([...kept.values()].every(seconds => seconds > 75 * 3_600))
  assert.equal(log.mock.callCount(), 1, 'the work is done once')
})

test('the code for n8n in docs/events.md verifies what arrives, and passes on the event alone', async t => {
  const text = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8')
  const [, code] = /^```js\n(.*?)^```$/ms.exec(text)!
  const secret = newSecret()
  const AsyncFunction = (async () => {}).constructor as typeof Function
  // As n8n runs it: with its own words, in which an item has the fields, and the raw body is a file.
  const node = new AsyncFunction('$input', 'require', code!.replace('whsec_…', secret))
  const passed: unknown[] = []
  const server = createServer(async (request, response) => {
    const { headers, text } = await readRequest(request)
    const input = { first: () => ({ json: { headers } }) }
    const helpers = { getBinaryDataBuffer: async () => Buffer.from(text) }
    const run = node.call({ helpers }, input, createRequire(import.meta.url)) as Promise<{ json: unknown }[]>
    const status = await run.then(
      items => {
        passed.push(...items.map(({ json }) => json))
        return 200
      },
      () => 500,
    )
    response.writeHead(status).end()
  })
  const url = await listening(t, server)
  const send = async (key: string) => {
    const destination = webhook({ url, secrets: [newSecret(), key] })
    t.after(destination.close)
    assert.equal((await destination.check(soon())) === null, key === secret)
    return (await destination.deliver(joined(1), soon())).is
  }
  assert.equal(await send(secret), 'delivered')
  assert.equal(await send(newSecret()), 'unclear')
  const { id, name, email, createdAt } = joined(1).contact
  assert.deepEqual(passed, [{ id, name, email, createdAt: createdAt.toISOString() }])
})

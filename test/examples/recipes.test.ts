import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { webhook } from '../../src/destinations/webhook.ts'
import { joined } from '../contracts/destination.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listening } from '../harness/listening.ts'
import { readRequest } from '../harness/receiver.ts'

const example = (path: string) => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url))
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`
const soon = () => AbortSignal.timeout(20_000)

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

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { contentFields, send } from '../../src/http/wire/answer.ts'
import { boundConnections } from '../../src/http/wire/connections.ts'
import * as limits from '../../src/http/wire/limits.ts'
import { createListener } from '../../src/http/wire/listener.ts'
import { until } from '../harness/program.ts'
import { recordingLog, startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { json, someone } from '../harness/tls.ts'
import { pipelineUnread, type UnreadClients } from '../harness/unread.ts'

const attack = async (t: TestContext, clients: Promise<UnreadClients>) => {
  const started = await clients
  t.after(started.close)
  return started
}

/** Signs up one after the other until told to stop, each on a connection of its own. Returns how many were taken. */
function signUpAndUp(baseUrl: string): () => Promise<number> {
  let isOver = false
  const signups = (async () => {
    let taken = 0
    for (; !isOver || taken === 0; taken++) {
      const init = { method: 'POST', headers: { ...json, connection: 'close' }, body: someone(`honest-${taken}`) }
      const { status } = await fetch(`${baseUrl}/api/waitlist`, init)
      assert.equal(status, 200)
      await wait(20)
    }
    return taken
  })()
  return () => {
    isOver = true
    return signups
  }
}

/** Of each line that says why connections were cut. There is one in ten seconds. */
const cutsIn = (logged: readonly Record<string, unknown>[]) =>
  logged.filter(({ msg }) => /^connections were cut/.test(String(msg))).map(({ unread }) => unread)

const short = { status: 204, fields: [], body: null }

/** A server whose longest page has so many bytes, of which the kernel takes about half. */
async function serverOf(t: TestContext, bytes: number) {
  const page = Buffer.alloc(bytes)
  const long = { status: 200, fields: contentFields('text/html', bytes), body: page }
  const server = createListener(({ url }, response) => send(response, url === '/docs/api' ? long : short), null)
  const { log, logged } = recordingLog()
  boundConnections({ all: 100, share: 100, clientOf: () => null, log }).add(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, logged }
}

describe('C-61: clients that do not read', () => {
  test('requests behind an answer that is not read hold so much memory at most; the oldest connections are cut, which is logged', {
    timeout: 30_000,
  }, async t => {
    const { baseUrl, logged } = await startService(t)
    const honest = signUpAndUp(baseUrl)
    const clients = await attack(t, pipelineUnread(baseUrl, { connections: 60, requests: 400, signs: 200 }))
    // The kernel takes some answers for each of them; hundreds of requests are still held on each.
    await until(() => clients.open() <= limits.STALLED_BYTES / (200 * limits.REQUEST_BYTES))
    assert.deepEqual(cutsIn(logged), [1])
    await honest()
  })

  test('answers hold so much memory at most; the connections that do not take theirs are cut, which is logged', {
    timeout: 30_000,
  }, async t => {
    const { baseUrl, logged } = await serverOf(t, limits.STALLED_BYTES)
    const clients = await attack(t, pipelineUnread(baseUrl, { connections: 20, requests: 1, signs: 200 }))
    await until(() => clients.open() <= 2)
    assert.deepEqual(cutsIn(logged), [1])
    assert.equal((await fetch(baseUrl)).status, 204)
  })

  test(`an answer is waited for ${limits.UNREAD_TIMEOUT / 1_000} s, whatever else the client sends`, {
    skip: !isSlow && 'it takes a minute, in .ci/run',
  }, async t => {
    const { baseUrl } = await serverOf(t, 0.75 * limits.STALLED_BYTES)
    const started = performance.now()
    const clients = await attack(t, pipelineUnread(baseUrl, { connections: 1, requests: 100, signs: 1_000 }))
    await wait(limits.UNREAD_TIMEOUT - (performance.now() - started) - 2_000)
    assert.equal(clients.open(), 1)
    await wait(6_000)
    assert.equal(clients.open(), 0)
  })
})

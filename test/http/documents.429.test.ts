import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { DOCUMENTS_PER_MINUTE } from '../../src/http/wire/limits.ts'
import { tooManyRequests } from '../../src/http/wire/refusals.ts'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { openTestServer } from '../harness/server.ts'
import { startService } from '../harness/service.ts'

const documents = ['/api/waitlist', '/api/openapi.json', '/docs/api', '/.well-known/api-catalog']
const signup = { name: 'Ada', email: 'ada@example.com' }

/** A client that may fetch so many documents more; one was its description of the service. */
async function readerOf(t: TestContext, left: number, env = {}) {
  const documentLimiter = memoryLimiter({ limit: left + 1, window: 60 })
  t.after(() => documentLimiter.close())
  return clientOf(await openTestServer(t, {}, env, undefined, { documentLimiter }))
}

test('C-8, C-53: a client that has fetched too many documents is told when it may fetch one more', async t => {
  const { request } = await readerOf(t, 2 * documents.length)
  for (const path of documents) {
    const { status, headers } = await request(path)
    assert.equal(status, 200)
    const etag = headers.get('etag')!
    assert.equal((await request(path, { method: 'HEAD', headers: { 'if-none-match': etag } })).status, 304)
  }
  for (const path of documents) {
    const answer = await request(path)
    const wait = Number(answer.headers.get('retry-after'))
    assert.ok(wait >= 1 && wait <= 7, 'one of nine comes back in a ninth of a minute')
    assertRefused(answer, 429, tooManyRequests(wait).error)
    assert.equal(answer.headers.get('retry-after'), String(wait))
    assert.equal(answer.headers.get('ratelimit'), null)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    assert.equal(answer.headers.get('access-control-expose-headers'), 'Retry-After')
    assert.equal((await request(path, { method: 'HEAD' })).status, 429)
  }
})

test('C-92: neither the health report nor anything without a document is limited', async t => {
  const { request } = await readerOf(t, 1)
  assert.equal((await request('/docs/api')).status, 200)
  for (const [method, path, status] of [
    ['GET', '/api/health', 200],
    ['HEAD', '/api/health', 200],
    ['GET', '/', 302],
    ['GET', '/nothing', 404],
    ['PUT', '/docs/api', 405],
    ['OPTIONS', '/docs/api', 204],
  ] as const) {
    for (let i = 0; i < 20; i++) assert.equal((await request(path, { method })).status, status, `${method} ${path}`)
  }
  assert.equal((await request('/docs/api')).status, 429)
})

test('neither another client nor signups count, and documents do not count as attempts', async t => {
  const { request, signUp } = await readerOf(t, 0, { RATE_LIMIT: '1', TRUST_PROXY: '1' })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const read = async (address: string) => (await request('/docs/api', { headers: from(address) })).status
  assert.deepEqual([await read('192.0.2.1'), await read('192.0.2.1'), await read('192.0.2.2')], [200, 429, 200])
  assert.equal((await signUp(signup, from('192.0.2.1'))).status, 200)
  assert.equal((await signUp(signup, from('192.0.2.3'))).status, 200)
  assert.equal((await signUp(signup, from('192.0.2.3'))).status, 429)
  assert.equal(await read('192.0.2.3'), 200)
})

test('a client may fetch 600 documents, and waiting as long as Retry-After says is enough for one more', async t => {
  const { request } = await clientOf(await startService(t))
  let fetched = 0
  let answer = await request('/api/waitlist')
  for (; answer.status === 200 && fetched < 2 * DOCUMENTS_PER_MINUTE; fetched++) answer = await request('/api/waitlist')
  assert.equal(answer.status, 429)
  assert.ok(fetched >= 599, `${fetched} documents, after the first`)
  assert.equal(answer.headers.get('retry-after'), '1')
  await setTimeout(1_000)
  assert.equal((await request('/api/waitlist')).status, 200)
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { DOCUMENTS_PER_MINUTE } from '../../src/http/wire/limits.ts'
import { tooManyRequests } from '../../src/http/wire/refusals.ts'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { type Answer, assertRefused, type Client, clientOf } from '../harness/client.ts'
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

/** Whether each of these addresses may fetch a document. */
async function admitted(client: Client, addresses: readonly string[]): Promise<boolean[]> {
  const answers: Answer[] = []
  for (const each of addresses) {
    answers.push(await client.request('/api/waitlist', { headers: { 'x-forwarded-for': each } }))
  }
  return answers.map(({ status }) => status === 200)
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

test('signups and documents do not count for each other', async t => {
  const { request, signUp } = await readerOf(t, 1, { RATE_LIMIT: '2' })
  assert.equal((await request('/docs/api')).status, 200)
  assert.equal((await request('/docs/api')).status, 429)
  assert.equal((await signUp(signup)).headers.get('ratelimit')?.split(';')[1], 'r=1')

  const other = await readerOf(t, 1, { RATE_LIMIT: '1' })
  await other.signUp(signup)
  assert.equal((await other.signUp(signup)).status, 429)
  assert.equal((await other.request('/docs/api')).status, 200)
})

test('clients are told apart as they are for signups: by address, with 16 quotas for an IPv6 /48', async t => {
  const client = await readerOf(t, 0, { TRUST_PROXY: '1' })
  assert.deepEqual(await admitted(client, ['192.0.2.1', '192.0.2.2', '192.0.2.1']), [true, true, false])
  const crowd = await admitted(
    client,
    Array.from({ length: 17 }, (_, i) => `2001:db8:1:${i}::1`),
  )
  assert.deepEqual(crowd, [...Array.from({ length: 16 }, () => true), false])
  assert.deepEqual(await admitted(client, ['2001:db8:2::1']), [true])
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

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { DOCUMENTS_PER_MINUTE } from '../../src/http/wire/limits.ts'
import { tooManyAttempts, tooManyRequests } from '../../src/http/wire/refusals.ts'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { openTestServer } from '../harness/server.ts'
import { startService } from '../harness/service.ts'

const signup = (n: number) => ({ name: 'Ada', email: `ada${n}@example.com` })

/** The fields of draft-ietf-httpapi-ratelimit-headers-11, read as Structured Fields (RFC 9651 §3.1, §3.3). */
function rateLimit({ headers }: Answer): { r: number; t: number } {
  const match = /^"signup";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '')
  assert.ok(match, `RateLimit reads ${headers.get('ratelimit')}`)
  return { r: Number(match[1]), t: Number(match[2]) }
}

test('C-35, C-37: a refused attempt says in Retry-After, RateLimit and words how many seconds to wait', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '2', RATE_LIMIT_WINDOW: '10m' }))
  await client.signUp(signup(1))
  await client.signUp(signup(2))
  const answer = await client.signUp(signup(3))
  const retryAfter = answer.headers.get('retry-after')!
  assert.match(retryAfter, /^[1-9]\d*$/, 'a whole number of at least 1, never a date')
  assert.ok(Number(retryAfter) <= 300, 'one attempt of two comes back in half of the window')
  assertRefused(answer, 429, tooManyAttempts(Number(retryAfter)).error)
  assert.deepEqual(rateLimit(answer), { r: 0, t: Number(retryAfter) })
  assert.equal(answer.headers.get('vary'), 'Origin')
})

test('C-35: when the wait is shorter than a second it is told as 1, never 0', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '1', RATE_LIMIT_WINDOW: '1s' }))
  const answers = await Promise.all([1, 2, 3].map(n => client.signUp(signup(n))))
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0)
  for (const answer of refused) {
    assertRefused(answer, 429, 'too many signup attempts, please try again in 1 second')
    assert.equal(answer.headers.get('retry-after'), '1')
  }
})

test('C-36, C-38: the policy and what is left are on every answer that passed the limiter', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '5', RATE_LIMIT_WINDOW: '1h' }))
  const answers = [
    await client.signUp(signup(1)),
    await client.signUp(signup(1)),
    await client.signUp('{}'),
    await client.signUp('{}', { 'content-type': 'text/plain' }),
    await client.signUp(' '.repeat(20_000)),
    await client.signUp(signup(1)),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 400, 415, 413, 429],
  )
  assert.deepEqual(
    answers.map(answer => rateLimit(answer).r),
    [4, 3, 2, 1, 0, 0],
  )
  for (const answer of answers) {
    assert.equal(answer.headers.get('ratelimit-policy'), '"signup";q=5;w=3600')
    const { t: seconds } = rateLimit(answer)
    assert.ok(seconds >= 1 && seconds <= 720, 'one attempt comes back every 720 seconds')
    assert.equal(answer.headers.get('x-ratelimit-limit') ?? answer.headers.get('ratelimit-limit'), null)
  }
})

test('C-16, C-38: GET, HEAD, OPTIONS and a preflight neither count nor tell the quota', async t => {
  const service = await startService(t, { RATE_LIMIT: '1', CORS_ORIGINS: 'https://example.com' })
  const client = await clientOf(service)
  const preflight = { origin: 'https://example.com', 'access-control-request-method': 'POST' }
  for (const [method, headers] of [['GET'], ['HEAD'], ['OPTIONS'], ['OPTIONS', preflight], ['PUT']] as const) {
    const answer = await client.request('/api/waitlist', headers === undefined ? { method } : { method, headers })
    assert.equal(answer.headers.get('ratelimit'), null, method)
    assert.equal(answer.headers.get('ratelimit-policy'), null, method)
  }
  assert.equal((await client.signUp(signup(1))).status, 200)
  assert.equal((await client.signUp(signup(2))).status, 429)
  for (const path of ['/api/waitlist', '/api/health', '/docs/api']) {
    assert.equal((await client.request(path)).status, 200, `${path} is not limited`)
  }
})

test('C-35: waiting as long as Retry-After says is enough', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '3', RATE_LIMIT_WINDOW: '3s' }))
  let answer = await client.signUp(signup(0))
  for (let n = 1; answer.status === 200 && n < 100; n++) answer = await client.signUp(signup(n))
  assert.equal(answer.status, 429)
  await setTimeout(Number(answer.headers.get('retry-after')) * 1000)
  assert.equal((await client.signUp(signup(99))).status, 200)
})

test('C-40: the clients of an IPv6 /48 share 16 quotas; IPv4 has only its own', async t => {
  const service = await startService(t, { RATE_LIMIT: '1', TRUST_PROXY: '1' })
  const client = await clientOf(service)
  const attempt = (address: string) => client.signUp('{}', { 'x-forwarded-for': address })
  for (let i = 0; i < 16; i++) {
    const answer = await attempt(`2001:db8:1:${i}::1`)
    assert.equal(answer.status, 400, `the ${i}. of 16`)
    assert.equal(rateLimit(answer).r, 0)
  }
  const refused = await attempt('2001:db8:1:16::1')
  assertRefused(refused, 429)
  const seconds = Number(refused.headers.get('retry-after'))
  assert.ok(seconds <= 38, 'one of 16 attempts comes back in a sixteenth of the window')
  assert.deepEqual(rateLimit(refused), { r: 0, t: seconds })
  assert.equal((await attempt('2001:db8:2::1')).status, 400, 'another network')
  for (let i = 0; i < 20; i++) assert.equal((await attempt(`192.0.2.${i}`)).status, 400)
})

const documents = ['/api/waitlist', '/api/openapi.json', '/docs/api', '/.well-known/api-catalog']

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
  assert.equal((await signUp(signup(1), from('192.0.2.1'))).status, 200)
  assert.equal((await signUp(signup(1), from('192.0.2.3'))).status, 200)
  assert.equal((await signUp(signup(1), from('192.0.2.3'))).status, 429)
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

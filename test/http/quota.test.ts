import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { tooManyAttempts } from '../../src/http/errors.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

const signup = (n: number) => ({ name: 'Ada', email: `ada${n}@example.com` })

/** The fields of draft-ietf-httpapi-ratelimit-headers-11, read as Structured Fields (RFC 9651 §3.1, §3.3). */
function rateLimit({ headers }: Answer): { r: number; t: number } {
  const match = /^"signup";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '')
  assert.ok(match, `RateLimit reads ${headers.get('ratelimit')}`)
  return { r: Number(match[1]), t: Number(match[2]) }
}

test('C-35, C-37: a refused attempt says in Retry-After, RateLimit and words how many seconds to wait', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '2/10m' }))
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
  const client = await clientOf(await startService(t, { RATE_LIMIT: '1/1s' }))
  const answers = await Promise.all([1, 2, 3].map(n => client.signUp(signup(n))))
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0)
  for (const answer of refused) {
    assertRefused(answer, 429, 'too many signup attempts, please try again in 1 second')
    assert.equal(answer.headers.get('retry-after'), '1')
  }
})

test('C-36, C-38: the policy and what is left are on every answer that passed the limiter', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '5/1h' }))
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
  const client = await clientOf(await startService(t, { RATE_LIMIT: '3/3s' }))
  let answer = await client.signUp(signup(0))
  for (let n = 1; answer.status === 200 && n < 100; n++) answer = await client.signUp(signup(n))
  assert.equal(answer.status, 429)
  await setTimeout(Number(answer.headers.get('retry-after')) * 1000)
  assert.equal((await client.signUp(signup(99))).status, 200)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const origin = 'https://example.com'
const signup = { name: 'Ada', email: 'ada@example.com' }
const second = 'http://localhost:3000'
const env = { CORS_ORIGINS: `${origin}, ${second}` }
const { request, signUp } = await clientOf(await startService(wholeFile, env))

/** The CORS fields of an answer, Vary apart. */
const corsOf = ({ headers }: Answer) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))

const allowed = (origin: string) => ({
  'access-control-allow-credentials': 'true',
  'access-control-allow-origin': origin,
  'access-control-expose-headers': 'Retry-After, RateLimit, RateLimit-Policy, Waitlist-Signup',
})

test('C-50, C-51, C-53: a listed origin may read every answer to POST, errors too', async t => {
  const { signUp } = await clientOf(await startService(t, { ...env, RATE_LIMIT: '4' }))
  const answers = [
    await signUp(signup, { origin }),
    await signUp('{', { origin }),
    await signUp(' '.repeat(20_000), { origin }),
    await signUp('{}', { origin, 'content-type': 'text/plain' }),
    await signUp(signup, { origin }),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 400, 413, 415, 429],
  )
  for (const answer of answers) {
    assert.deepEqual(corsOf(answer), allowed(origin))
    assert.equal(answer.headers.get('vary'), 'Origin')
  }
})

test('C-33, C-50: the origin is compared as a whole; another one gets no CORS header, but its request is served', async () => {
  const others = [
    undefined,
    'https://example.com.evil.example',
    'http://example.com',
    'https://example.com:8443',
    'https://example.com, http://localhost:3000',
    'null',
    '*',
  ]
  for (const other of others) {
    const answer = await signUp(signup, other === undefined ? {} : { origin: other })
    assert.equal(answer.status, 200, String(other))
    assert.deepEqual(corsOf(answer), {}, String(other))
    assert.equal(answer.headers.get('vary'), 'Origin')
  }
})

const preflight = (origin: string, method = 'POST') => ({
  method: 'OPTIONS',
  headers: {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'content-type',
    'access-control-request-private-network': 'true',
  },
})

test('C-52, C-56: a preflight of a listed origin learns what it may send, and is not limited; another one learns nothing', async t => {
  const { request } = await clientOf(await startService(t, { ...env, RATE_LIMIT: '1' }))
  for (let i = 0; i < 3; i++) {
    const answer = await request('/api/waitlist', preflight(second))
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assert.deepEqual(corsOf(answer), {
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': 'Content-Type',
      'access-control-allow-methods': 'GET, HEAD, POST',
      'access-control-allow-origin': second,
      'access-control-max-age': '7200',
    })
    assert.equal(answer.headers.get('vary'), 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers')
  }
  const other = await request('/api/waitlist', preflight('https://evil.example'))
  assert.deepEqual([other.status, corsOf(other)], [204, {}])
  assert.match(other.headers.get('vary') ?? '', /^Origin,/)
})

test('C-9, C-54: every page may read the public documents, without credentials', async () => {
  for (const path of ['/api/waitlist', '/api/health', '/api/openapi.json', '/.well-known/api-catalog', '/docs/api']) {
    for (const headers of [{}, { origin }, { origin: 'https://other.example' }, { origin: 'null' }]) {
      const answer = await request(path, { headers })
      assert.deepEqual(
        corsOf(answer),
        { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'Link, ETag' },
        path,
      )
      assert.doesNotMatch(answer.headers.get('vary') ?? '', /origin/i)
    }
  }
})

const https = { BASE_URL: 'https://waitlist.example.org' }

const configurations: readonly [what: string, env: Record<string, string>, cookie: string][] = [
  ['plain HTTP (C-48)', env, 'waitlist=1; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax'],
  ['https', https, '__Host-waitlist=1; Path=/; Max-Age=31536000; HttpOnly; Secure; SameSite=Lax'],
  [
    'https and pages on other origins (C-49)',
    { ...https, ...env },
    '__Host-waitlist=1; Path=/; Max-Age=31536000; HttpOnly; Secure; SameSite=None; Partitioned',
  ],
]

for (const [what, env, cookie] of configurations) {
  test(`C-46, C-47: the cookie of a service with ${what}, on every 200 of POST, new and known`, async t => {
    const { origin: baseUrl } = await startService(t, env)
    const client = await clientOf({ baseUrl })
    // The same for everybody, and for who sends it back.
    for (const name of ['', cookie.split(';')[0]!]) {
      assert.deepEqual((await client.signUp(signup, { cookie: name })).headers.getSetCookie(), [cookie])
    }
  })
}

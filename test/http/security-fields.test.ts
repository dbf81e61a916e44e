import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, clientOf } from '../harness/client.ts'
import { openTestServer } from '../harness/server.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request } = await clientOf(await startService(wholeFile))

const signup = { name: 'Ada', email: 'ada@example.com' }

/** The table of section 6, apart from the documentation page, which is HTML and has a stricter one of its own. */
function assertSecure({ headers, status }: Answer, corp: 'same-origin' | 'cross-origin', what: string): void {
  const expected = {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': corp,
    'strict-transport-security': null, // C-57, RFC 6797 §7.2: never over plain HTTP
    'x-powered-by': null,
    server: null,
    'x-xss-protection': null,
  }
  const actual = Object.fromEntries(Object.keys(expected).map(name => [name, headers.get(name)]))
  assert.deepEqual(actual, expected, `${what} ${status}`)
}

test('C-57: every answer to POST carries the security fields, a 500 too', async t => {
  const { signUp } = await clientOf(await startService(t, { RATE_LIMIT: '5' }))
  assertSecure(await signUp(signup), 'same-origin', 'new')
  assertSecure(await signUp(signup), 'same-origin', 'known')
  assertSecure(await signUp('{'), 'same-origin', 'syntax')
  assertSecure(await signUp('{}', { 'content-type': 'a/b' }), 'same-origin', 'type')
  assertSecure(await signUp(' '.repeat(20_000)), 'same-origin', 'size')
  assertSecure(await signUp(signup), 'same-origin', 'attempts')
  const full = await clientOf(await openTestServer(t, { minimumFree: Number.MAX_SAFE_INTEGER }))
  assertSecure(await full.signUp(signup), 'same-origin', 'full disk')
})

test('C-57: public documents carry them, and other origins may load them', async () => {
  for (const path of ['/', '/api/waitlist', '/api/health', '/api/openapi.json', '/.well-known/api-catalog']) {
    for (const method of ['GET', 'HEAD']) assertSecure(await request(path, { method }), 'cross-origin', path)
  }
  const { headers } = await request('/api/waitlist')
  const notModified = await request('/api/waitlist', { headers: { 'if-none-match': headers.get('etag')! } })
  assertSecure(notModified, 'cross-origin', 'unchanged')
})

test('C-57: OPTIONS and what is refused before a resource is reached carry them', async () => {
  assertSecure(await request('/api/waitlist', { method: 'OPTIONS' }), 'same-origin', 'OPTIONS')
  assertSecure(await request('/api/waitlist', { method: 'DELETE' }), 'same-origin', 'DELETE')
  assertSecure(await request('/nothing'), 'same-origin', 'unknown')
  assertSecure(await request('/%zz'), 'same-origin', 'malformed')
})

test('C-64: a name or an address is in no log line, also when the signup fails', async t => {
  const service = await startService(t)
  const { request, signUp } = await clientOf(service)
  const sent = { name: 'Zqxjname', email: 'zqxjmail@example.com' }
  await request('/zqxj?zqxj')
  await signUp(sent)
  await signUp(sent)
  await signUp({ ...sent, email: 'zqxjmail@' })
  assert.ok(service.logged.length >= 3)
  assert.doesNotMatch(JSON.stringify(service.logged), /zqxj/i)

  const server = await openTestServer(t, { minimumFree: Number.MAX_SAFE_INTEGER })
  await (await clientOf(server)).signUp(sent)
  assert.doesNotMatch(JSON.stringify(server.logged), /zqxj/i)
})

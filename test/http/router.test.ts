/** Paths, methods, and what every answer has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { full, openTestServer, startService, wholeFile } from '../harness/service.ts'

const { baseUrl, request } = await clientOf(await startService(wholeFile))

const READ = 'GET, HEAD, OPTIONS'
const allow: Readonly<Record<string, string>> = {
  '/': READ,
  '/api/waitlist': 'GET, HEAD, POST, OPTIONS',
  '/api/health': READ,
  '/api/openapi.json': READ,
  '/docs/api': READ,
  '/.well-known/api-catalog': READ,
}
const NOT_FOUND = 'there is nothing at this address'

const ask = (requestLine: string, headers: string[] = [], body = '') =>
  send(baseUrl, [`${requestLine} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers], body)

test('C-18, C-89: a method that a path does not have is a 405 that names those it has, body or not', async () => {
  for (const [path, methods] of Object.entries(allow)) {
    const others = ['PUT', 'PATCH', 'DELETE', 'TRACE', 'QUERY', 'PROPFIND']
    if (path !== '/api/waitlist') others.push('POST')
    for (const method of others) {
      const hasBody = method === 'PUT'
      const headers = hasBody ? ['Content-Type: text/xml', 'Content-Length: 4'] : []
      const answer = await ask(`${method} ${path}`, headers, hasBody ? '<a/>' : '')
      assertRefused(answer, 405, 'this method is not allowed here')
      assert.equal(answer.headers.get('allow'), methods, `${method} ${path}`)
    }
  }
})

test('C-17: OPTIONS is a 204 with Allow and no content, for the server as a whole too', async () => {
  for (const [path, methods] of [...Object.entries(allow), ['*', 'GET, HEAD, POST, OPTIONS']]) {
    const { status, headers, text } = await ask(`OPTIONS ${path}`)
    assert.deepEqual([status, text, headers.get('allow')], [204, '', methods])
    assert.equal(headers.get('content-length'), null, 'RFC 9110 §8.6')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('access-control-allow-methods'), null, 'it is no preflight')
  }
})

test('C-16, C-22: HEAD has the status and all headers of GET, Content-Length included, and no content', async () => {
  for (const path of Object.keys(allow)) {
    const [get, head] = [await ask(`GET ${path}`), await ask(`HEAD ${path}`)]
    assert.deepEqual([head.status, head.text], [get.status, ''])
    assert.equal(get.headers.get('content-length'), String(Buffer.byteLength(get.text)), path)
    for (const { headers } of [get, head]) {
      assert.ok(!Number.isNaN(Date.parse(headers.get('date') ?? '')), 'C-21: with a Date')
      headers.delete('date')
    }
    assert.deepEqual([...head.headers], [...get.headers], path)
  }
})

test('C-18, C-23: paths are exact: no trailing slash, no other case, nothing is normalised', async () => {
  const paths = ['/api/nothing', '/api/waitlist/', '/API/waitlist', '//api/waitlist', '/api/./waitlist', '///']
  const encoded = ['/api/waitlist%2F', '/api%2Fwaitlist', '/api/health%3Fx', '/api/health%00', '/api/waitlist;x=1']
  for (const path of [...paths, ...encoded, '//evil.example/x', 'http://x//evil.example/x', 'ftp://x/api/health']) {
    for (const method of ['GET', 'POST', 'OPTIONS', 'QUERY']) {
      const answer = await ask(`${method} ${path}`)
      assertRefused(answer, 404, NOT_FOUND)
      assert.equal(answer.headers.get('allow'), null)
    }
  }
  for (const path of ['/%zz', '/api/%', '/api/%c3%28', '/%E0%A4%A']) assertRefused(await ask(`GET ${path}`), 400)
})

test('C-23: a query is ignored, what is unreserved may come encoded, and the absolute form is taken', async () => {
  const paths = ['/api/health?', '/api/health?x=%zz&y=/../', '/api/health?/api/waitlist', '/api/%68ealth']
  const absolute = ['http://x/api/health', 'https://other.example:8443/api/health?x', 'HTTP://[::1]/api/health']
  for (const target of [...paths, ...absolute]) {
    assert.equal((await ask(`GET ${target}`)).json.status, 'ok', target)
  }
  assert.equal((await ask('GET http://x')).status, 302, 'no path is the root')
})

/** The table of C-57, apart from HTML, which has a stricter one of its own. */
function assertSecure({ headers, status }: Answer, corp: 'same-origin' | 'cross-origin', what: string): void {
  const expected = {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': corp,
    'strict-transport-security': null, // RFC 6797 §7.2: never over plain HTTP
    'x-powered-by': null,
    server: null,
  }
  const actual = Object.fromEntries(Object.keys(expected).map(name => [name, headers.get(name)]))
  assert.deepEqual(actual, expected, `${what} ${status}`)
}

test('C-32, C-57: every answer carries the security headers; what is no document is never stored and has no tag', async t => {
  const { signUp, request: ask } = await clientOf(await startService(t, { RATE_LIMIT: '5/10m' }))
  const unable = await clientOf(await openTestServer(t, {}, full))
  const conditions = { 'if-none-match': '*', 'if-modified-since': new Date().toUTCString() }
  const ada = { name: 'Ada', email: 'ada@example.com' }
  const answers = [
    await signUp(ada, conditions),
    await signUp(ada, conditions),
    await signUp('{', conditions),
    await signUp('{}', { 'content-type': 'a/b', ...conditions }),
    await signUp(' '.repeat(20_000), conditions),
    await signUp(ada, conditions),
    await unable.signUp(ada, conditions),
    await ask('/api/waitlist', { method: 'OPTIONS' }),
    await ask('/api/waitlist', { method: 'DELETE' }),
    await ask('/nothing', { headers: conditions }),
    await ask('/%zz', { headers: conditions }),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 400, 415, 413, 429, 500, 204, 405, 404, 400],
  )
  for (const answer of answers) assertSecure(answer, 'same-origin', answer.text)
  const never = [...answers, await ask('/', { headers: conditions }), await ask('/api/health', { headers: conditions })]
  for (const { headers } of never) {
    assert.deepEqual([headers.get('cache-control'), headers.get('etag')], ['no-store', null])
  }
  for (const path of ['/', '/api/waitlist', '/api/health', '/api/openapi.json', '/.well-known/api-catalog']) {
    assertSecure(await request(path), 'cross-origin', path)
  }
})

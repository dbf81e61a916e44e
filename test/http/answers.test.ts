import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { methodNotAllowed, notFound } from '../../src/http/errors.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { full, openTestServer } from '../harness/server.ts'
import { startService, wholeFile } from '../harness/service.ts'

/** What every answer has, whatever is asked: methods, entity tags, caches, and the fields that keep browsers safe. */
const { baseUrl, request } = await clientOf(await startService(wholeFile))

const cacheControl = {
  '/api/waitlist': 'public, max-age=300',
  '/.well-known/api-catalog': 'public, max-age=3600',
  '/api/openapi.json': 'public, max-age=3600',
  '/docs/api': 'public, max-age=3600',
}
const documents = Object.keys(cacheControl) as (keyof typeof cacheControl)[]

test('C-9: documents may be kept for their time and carry a strong tag, the hash of their bytes', async () => {
  for (const path of documents) {
    const { headers, text } = await request(path)
    assert.equal(headers.get('cache-control'), cacheControl[path])
    assert.equal(headers.get('etag'), `"${createHash('sha256').update(text).digest('base64url')}"`, path)
    assert.equal(headers.get('last-modified'), null)
    assert.equal(headers.get('expires'), null)
  }
})

test('C-32: everything else is never stored, has no tag, and is answered whatever the conditions', async t => {
  const { request, signUp } = await clientOf(await startService(t, { RATE_LIMIT: '3' }))
  const conditions = { 'if-none-match': '*', 'if-modified-since': new Date().toUTCString() }
  const ask = (path: string, method = 'GET') => request(path, { method, headers: conditions })
  const answers = [
    await signUp({ name: 'Ada', email: 'ada@example.com' }, conditions),
    await signUp('{}', conditions),
    await signUp('{}', { 'content-type': 'text/plain', ...conditions }),
    await signUp('{}', conditions),
    await ask('/api/health'),
    await ask('/'),
    await ask('/nothing'),
    await ask('/api/health', 'POST'),
    await ask('/api/waitlist', 'OPTIONS'),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 400, 415, 429, 200, 302, 404, 405, 204],
  )
  for (const { headers } of answers) {
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('etag'), null)
  }
})

test('C-22, C-32: If-None-Match is a list or *, compared weakly; a hit is a 304 for GET and HEAD', async () => {
  for (const path of documents) {
    const full = await request(path)
    const etag = full.headers.get('etag')!
    const hits = [etag, `W/${etag}`, '*', ` ${etag} `, `"a", ${etag}`, `"a",W/"b" ,\t${etag},"c"`, `"x, y", W/${etag}`]
    for (const ifNoneMatch of hits) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers, text } = await request(path, { method, headers: { 'if-none-match': ifNoneMatch } })
        assert.deepEqual([status, text], [304, ''], `${method} ${path} ${ifNoneMatch}`)
        assert.equal(headers.get('etag'), etag)
        assert.equal(headers.get('cache-control'), cacheControl[path])
        assert.equal(headers.get('vary'), full.headers.get('vary'))
        assert.equal(headers.get('link'), full.headers.get('link'))
        assert.ok(headers.has('date'))
        assert.equal(headers.get('content-type'), null)
        assert.equal(headers.get('content-length'), null, 'RFC 9110 §8.6')
        assert.equal(headers.get('access-control-allow-origin'), '*', 'or a page could not use its copy')
      }
    }
    const bare = etag.slice(1, -1)
    for (const ifNoneMatch of ['"x"', bare, `"${bare}x"`, `"${bare.slice(1)}"`, '', `"${etag}"`, 'W/"x"']) {
      const { status } = await request(path, { headers: { 'if-none-match': ifNoneMatch } })
      assert.equal(status, 200, `${path} ${ifNoneMatch}`)
    }
  }
})

test('C-32, C-34: dates, ranges and codings change nothing', async () => {
  const headers = {
    'if-modified-since': new Date().toUTCString(),
    range: 'bytes=0-3',
    'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT',
    'if-match': '"x"',
    'accept-encoding': 'gzip, br, zstd',
  }
  for (const path of documents) {
    const answer = await request(path, { headers })
    assert.deepEqual([answer.status, answer.headers.get('content-encoding')], [200, null])
    assert.doesNotMatch(answer.headers.get('vary') ?? '', /accept-encoding/i)
  }
})

const READ = 'GET, HEAD, OPTIONS'
const allow: Readonly<Record<string, string>> = {
  '/': READ,
  '/api/waitlist': 'GET, HEAD, POST, OPTIONS',
  '/api/health': READ,
  '/api/openapi.json': READ,
  '/docs/api': READ,
  '/.well-known/api-catalog': READ,
}

const ask = (baseUrl: string, requestLine: string, fields: string[] = [], body = '') =>
  send(baseUrl, [requestLine, 'Host: x', 'Connection: close', ...fields], body)

test('C-18, C-89: a method that a path does not have is a 405 that names those it has, body or not', async () => {
  for (const [path, methods] of Object.entries(allow)) {
    const others = ['PUT', 'PATCH', 'DELETE', 'TRACE', 'QUERY', 'PROPFIND', 'REPORT']
    if (path !== '/api/waitlist') others.push('POST')
    for (const method of others) {
      const bodies = method === 'TRACE' ? [''] : ['', '<a/>']
      for (const body of bodies) {
        const fields = body === '' ? [] : ['Content-Type: text/xml', `Content-Length: ${body.length}`]
        const answer = await ask(baseUrl, `${method} ${path} HTTP/1.1`, fields, body)
        assertRefused(answer, 405, methodNotAllowed(methods).error)
        assert.equal(answer.headers.get('allow'), methods, `${method} ${path}`)
      }
    }
  }
})

test('C-18: an unknown path is a 404, whatever the method', async () => {
  for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'QUERY', 'PROPFIND', 'TRACE']) {
    const answer = await ask(baseUrl, `${method} /api/nothing HTTP/1.1`)
    assertRefused(answer, 404, notFound.error)
    assert.equal(answer.headers.get('allow'), null)
  }
  const head = await ask(baseUrl, 'HEAD /api/nothing HTTP/1.1')
  assert.deepEqual([head.status, head.text], [404, ''])
})

test('C-17: OPTIONS is a 204 with Allow and no content', async () => {
  for (const [path, methods] of Object.entries(allow)) {
    const { status, headers, text } = await ask(baseUrl, `OPTIONS ${path} HTTP/1.1`)
    assert.deepEqual([status, text], [204, ''])
    assert.equal(headers.get('allow'), methods)
    assert.equal(headers.get('content-length'), null, 'RFC 9110 §8.6')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('access-control-allow-methods'), null, 'it is no preflight')
  }
})

test('C-17: OPTIONS * speaks for the server as a whole; no other method may', async () => {
  const { status, headers, text } = await ask(baseUrl, 'OPTIONS * HTTP/1.1')
  assert.deepEqual([status, text, headers.get('allow')], [204, '', 'GET, HEAD, POST, OPTIONS'])
  assertRefused(await ask(baseUrl, 'GET * HTTP/1.1'), 400)
  assertRefused(await ask(baseUrl, 'POST * HTTP/1.1'), 400)
})

test('C-16, C-22: HEAD has the status and all fields of GET, Content-Length included, and no content', async () => {
  for (const path of Object.keys(allow)) {
    const get = await ask(baseUrl, `GET ${path} HTTP/1.1`)
    const head = await ask(baseUrl, `HEAD ${path} HTTP/1.1`)
    assert.equal(head.text, '')
    assert.equal(head.status, get.status)
    assert.equal(get.headers.get('content-length'), String(Buffer.byteLength(get.text)), path)
    for (const { headers } of [get, head]) {
      assert.ok(!Number.isNaN(Date.parse(headers.get('date') ?? '')), 'C-21: with a Date')
      headers.delete('date')
    }
    assert.deepEqual([...head.headers], [...get.headers], path)
  }
})

test('C-23: paths are exact: no trailing slash, no other case, nothing is normalised', async () => {
  const paths = ['/api/waitlist/', '/API/waitlist', '//api/waitlist', '/api/./waitlist', '/api/x/../waitlist']
  const encoded = ['/api/waitlist%2F', '/api%2Fwaitlist', '/api/health%3Fx', '/api/health%00', '/api/waitlist;x=1']
  for (const path of [...paths, ...encoded, '//evil.example/x', '///']) {
    for (const method of ['GET', 'POST', 'PUT']) {
      assertRefused(await ask(baseUrl, `${method} ${path} HTTP/1.1`), 404, notFound.error)
    }
  }
})

test('C-23: a path that cannot be decoded is refused, not a crash', async () => {
  for (const path of ['/%zz', '/api/%', '/api/%c3%28', '/%E0%A4%A', '/api/waitlist%']) {
    const answer = await ask(baseUrl, `GET ${path} HTTP/1.1`)
    assert.ok(answer.status === 400 || answer.status === 404, `${path}: ${answer.status}`)
    assertRefused(answer, answer.status)
  }
})

test('C-23: a query string is ignored, and an unreserved character may come encoded (RFC 3986 §6.2.2.2)', async () => {
  for (const path of ['/api/health?', '/api/health?x=%zz&y=/../', '/api/health?/api/waitlist', '/api/%68ealth']) {
    const { status, json } = await ask(baseUrl, `GET ${path} HTTP/1.1`)
    assert.deepEqual([status, json.status], [200, 'ok'], path)
  }
})

test('C-23: the absolute form is taken, whatever its authority (RFC 9112 §3.2.2)', async () => {
  const found = ['http://x/api/health', 'https://other.example:8443/api/health?x', 'HTTP://[::1]/api/health']
  for (const target of found) assert.equal((await ask(baseUrl, `GET ${target} HTTP/1.1`)).status, 200, target)
  assert.equal((await ask(baseUrl, 'GET http://x HTTP/1.1')).status, 302, 'no path is the root')
  for (const target of ['http://x//evil.example/x', 'http://x/api/health/', 'ftp://x/api/health']) {
    assertRefused(await ask(baseUrl, `GET ${target} HTTP/1.1`), 404)
  }
})

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

test('C-57: every answer carries the security fields, and other origins may load the public documents', async t => {
  const { signUp } = await clientOf(await startService(t, { RATE_LIMIT: '5' }))
  const unable = await clientOf(await openTestServer(t, {}, full))
  for (const answer of [
    await signUp(signup),
    await signUp(signup),
    await signUp('{'),
    await signUp('{}', { 'content-type': 'a/b' }),
    await signUp(' '.repeat(20_000)),
    await signUp(signup),
    await unable.signUp(signup),
    await request('/api/waitlist', { method: 'OPTIONS' }),
    await request('/api/waitlist', { method: 'DELETE' }),
    await request('/nothing'),
    await request('/%zz'),
  ]) {
    assertSecure(answer, 'same-origin', answer.text)
  }
  for (const path of ['/', '/api/waitlist', '/api/health', '/api/openapi.json', '/.well-known/api-catalog']) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await request(path, { method })
      assertSecure(answer, 'cross-origin', path)
      const tag = { 'if-none-match': answer.headers.get('etag') ?? '' }
      assertSecure(await request(path, { method, headers: tag }), 'cross-origin', `${path}, unchanged`)
    }
  }
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

  const server = await openTestServer(t, {}, full)
  await (await clientOf(server)).signUp(sent)
  assert.doesNotMatch(JSON.stringify(server.logged), /zqxj/i)
})

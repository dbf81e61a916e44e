import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodNotAllowed, notFound } from '../../src/http/wire/refusals.ts'
import { assertRefused } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { baseUrl } = await startService(wholeFile)

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

test('C-16: GET and HEAD with a body are answered all the same', async () => {
  for (const method of ['GET', 'HEAD']) {
    const fields = ['Content-Type: application/json', 'Content-Length: 2']
    assert.equal((await ask(baseUrl, `${method} /api/health HTTP/1.1`, fields, '{}')).status, 200)
  }
})

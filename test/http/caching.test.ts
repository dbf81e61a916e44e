import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { preconditionFailed } from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request } = await clientOf(await startService(wholeFile))

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

test('C-32: If-None-Match on several lines counts as one list', async () => {
  const etag = (await request('/api/waitlist')).headers.get('etag')!
  const headers = new Headers({ 'if-none-match': '"a"' })
  headers.append('if-none-match', etag)
  assert.equal((await request('/api/waitlist', { headers })).status, 304)
})

test('C-32: If-Match that names another version is a 412; strong comparison, so a weak tag never matches', async () => {
  for (const path of documents) {
    const etag = (await request(path)).headers.get('etag')!
    for (const ifMatch of ['"x"', `W/${etag}`, '"x", "y"']) {
      assertRefused(await request(path, { headers: { 'if-match': ifMatch } }), 412, preconditionFailed.error)
      assert.equal((await request(path, { method: 'HEAD', headers: { 'if-match': ifMatch } })).status, 412)
    }
    for (const ifMatch of [etag, '*', `"x", ${etag}`]) {
      assert.equal((await request(path, { headers: { 'if-match': ifMatch } })).status, 200)
    }
    const both = { 'if-match': '"x"', 'if-none-match': etag }
    assert.equal((await request(path, { headers: both })).status, 412, 'RFC 9110 §13.2.2: If-Match first')
  }
})

test('C-32: dates and ranges change nothing', async () => {
  const fields = {
    'if-modified-since': new Date().toUTCString(),
    range: 'bytes=0-3',
    'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT',
  }
  for (const path of documents) assert.equal((await request(path, { headers: fields })).status, 200)
})

test('C-34: nothing is compressed, and nothing varies with Accept-Encoding', async () => {
  for (const path of documents) {
    const { headers } = await request(path, { headers: { 'accept-encoding': 'gzip, br, zstd' } })
    assert.equal(headers.get('content-encoding'), null)
    assert.ok(!/accept-encoding/i.test(headers.get('vary') ?? ''))
  }
})

/** Documents: entity tags, caches and conditional requests. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request } = await clientOf(await startService(wholeFile))

const documents = {
  '/api/waitlist': 'public, max-age=300',
  '/.well-known/api-catalog': 'public, max-age=3600',
  '/api/openapi.json': 'public, max-age=3600',
  '/docs/api': 'public, max-age=3600',
}

for (const [path, cacheControl] of Object.entries(documents)) {
  test(`C-9, C-32: ${path} may be kept for its time, and its tag is the hash of its bytes`, async () => {
    const full = await request(path)
    const etag = full.headers.get('etag')!
    assert.equal(full.headers.get('cache-control'), cacheControl)
    assert.equal(etag, `"${createHash('sha256').update(full.text).digest('base64url')}"`)
    assert.deepEqual([full.headers.get('last-modified'), full.headers.get('expires')], [null, null])

    const hits = [etag, `W/${etag}`, '*', ` ${etag} `, `"a",W/"b" ,\t${etag},"c"`, `"x, y", W/${etag}`]
    for (const ifNoneMatch of hits) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers, text } = await request(path, { method, headers: { 'if-none-match': ifNoneMatch } })
        assert.deepEqual([status, text], [304, ''], `${method} ${ifNoneMatch}`)
        for (const name of ['etag', 'cache-control', 'vary', 'link', 'access-control-allow-origin']) {
          assert.equal(headers.get(name), full.headers.get(name), name)
        }
        assert.deepEqual([headers.get('content-type'), headers.get('content-length')], [null, null])
      }
    }
    const bare = etag.slice(1, -1)
    for (const ifNoneMatch of ['"x"', bare, `"${bare}x"`, '', `"${etag}"`, 'W/"x"']) {
      assert.equal((await request(path, { headers: { 'if-none-match': ifNoneMatch } })).status, 200, ifNoneMatch)
    }
    // C-34: dates, ranges and codings change nothing.
    const ignored = { 'if-modified-since': new Date().toUTCString(), range: 'bytes=0-3', 'if-match': '"x"' }
    const answer = await request(path, { headers: { ...ignored, 'accept-encoding': 'gzip, br' } })
    assert.deepEqual([answer.status, answer.headers.get('content-encoding')], [200, null])
  })
}

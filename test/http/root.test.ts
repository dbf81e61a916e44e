import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

test('C-11, C-94: the root redirects to the documentation and links everything that describes the API', async t => {
  const { request, baseUrl: b } = await clientOf(await startService(t))
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, text } = await request('/', { method })
    assert.deepEqual([status, text], [302, ''])
    assert.equal(headers.get('location'), `${b}/docs/api`)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('etag'), null)
    assert.equal(
      headers.get('link'),
      `<${b}/.well-known/api-catalog>; rel="api-catalog"; type="application/linkset+json", ` +
        `<${b}/api/openapi.json>; rel="service-desc"; type="application/json", ` +
        `<${b}/docs/api>; rel="service-doc"; type="text/html", ` +
        `<${b}/api/health>; rel="status"; type="application/json"`,
    )
  }
})

test('C-94, C-95, C-97: what scanners look for and this service does not have is a 404, never a page', async t => {
  const { request } = await clientOf(await startService(t))
  const others = [
    '/robots.txt',
    '/sitemap.xml',
    '/favicon.ico',
    '/openapi.json',
    '/llms.txt',
    '/.well-known/oauth-authorization-server',
    '/.well-known/mcp/server-card.json',
    '/.well-known/agent-card.json',
    '/.well-known/',
    '/api',
    '/docs',
  ]
  for (const path of others) assert.equal((await request(path)).status, 404, path)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

const path = '/.well-known/api-catalog'

test('C-1…C-7: the catalog is a linkset of the API first and the catalog itself second', async t => {
  const { request, baseUrl: b } = await clientOf(await startService(t))
  const { status, json } = await request(path)
  assert.equal(status, 200)
  assert.deepEqual(json, {
    linkset: [
      {
        anchor: `${b}/api/waitlist`,
        'service-desc': [{ href: `${b}/api/openapi.json`, type: 'application/json' }],
        'service-doc': [{ href: `${b}/docs/api`, type: 'text/html' }],
        status: [{ href: `${b}/api/health`, type: 'application/json' }],
      },
      { anchor: `${b}${path}`, item: [{ href: `${b}/api/waitlist`, type: 'application/json' }] },
    ],
  })
})

test('C-2, C-10, C-94: the media type carries the quoted profile and no charset, whatever Accept says', async t => {
  const { request } = await clientOf(await startService(t))
  const accepts = ['*/*', 'application/linkset+json, application/json', 'application/json', 'text/html']
  for (const accept of accepts) {
    const { status, headers } = await request(path, { headers: { accept } })
    assert.equal(status, 200)
    assert.equal(
      headers.get('content-type'),
      'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    )
  }
})

test('C-3: GET and HEAD carry the relation api-catalog', async t => {
  const { request, baseUrl: b } = await clientOf(await startService(t))
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await request(path, { method })
    assert.equal(status, 200)
    assert.equal(
      headers.get('link'),
      `<${b}${path}>; rel="api-catalog"; type="application/linkset+json", <${b}/api/waitlist>; rel="item"`,
    )
  }
})

test('C-5: the catalog and the Link fields of the API state the same three links', async t => {
  const { request } = await clientOf(await startService(t))
  const [api] = (await request(path)).json.linkset
  const fields = (await request('/api/waitlist')).headers.get('link')!
  const links = [...fields.matchAll(/<([^>]+)>; rel="([^"]+)"; type="([^"]+)"/g)]
  for (const [, href, rel, type] of links) assert.deepEqual(api[rel!], [{ href, type }])
  assert.deepEqual(Object.keys(api).sort(), ['anchor', ...links.map(([, , rel]) => rel)].sort())
})

test('C-8, C-11: only GET, HEAD and OPTIONS; every other discovery resource announces the catalog', async t => {
  const { request, baseUrl: b } = await clientOf(await startService(t))
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const { status, headers } = await request(path, { method })
    assert.deepEqual([status, headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  }
  for (const other of ['/', '/docs/api', '/api/openapi.json']) {
    const { headers } = await request(other)
    assert.ok(headers.get('link')?.includes(`<${b}${path}>; rel="api-catalog"`), other)
  }
})

test('C-4, C-63: the catalog and the document know every path that answers', async t => {
  const { request } = await clientOf(await startService(t))
  const documented = Object.keys((await request('/api/openapi.json')).json.paths)
  assert.deepEqual(documented.sort(), [
    '/.well-known/api-catalog',
    '/api/health',
    '/api/openapi.json',
    '/api/waitlist',
    '/docs/api',
  ])
})

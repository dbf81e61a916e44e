import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { freePort } from '../harness/port.ts'
import { startService, wholeFile } from '../harness/service.ts'

const CATALOG = '/.well-known/api-catalog'
const env = { SERVICE_NAME: 'Moonbase', SERVICE_DESCRIPTION: 'Early access to "Moonbase" – für alle' }
const { request, baseUrl: b } = await clientOf(await startService(wholeFile, env))

const description =
  `<${b}/api/openapi.json>; rel="service-desc"; type="application/json", ` +
  `<${b}/docs/api>; rel="service-doc"; type="text/html", ` +
  `<${b}/api/health>; rel="status"; type="application/json"`
const announcement = `<${b}${CATALOG}>; rel="api-catalog"; type="application/linkset+json"`

test('C-1…C-7: the catalog is a linkset of the API first and the catalog itself second', async () => {
  const { status, json } = await request(CATALOG)
  assert.equal(status, 200)
  assert.deepEqual(json, {
    linkset: [
      {
        anchor: `${b}/api/waitlist`,
        'service-desc': [{ href: `${b}/api/openapi.json`, type: 'application/json' }],
        'service-doc': [{ href: `${b}/docs/api`, type: 'text/html' }],
        status: [{ href: `${b}/api/health`, type: 'application/json' }],
      },
      { anchor: b + CATALOG, item: [{ href: `${b}/api/waitlist`, type: 'application/json' }] },
    ],
  })
})

test('C-2, C-10, C-94: the media type of the catalog carries the quoted profile and no charset, whatever Accept says', async () => {
  for (const accept of ['*/*', 'application/linkset+json, application/json', 'application/json', 'text/html']) {
    const { status, headers } = await request(CATALOG, { headers: { accept } })
    assert.equal(status, 200)
    const profile = 'https://www.rfc-editor.org/info/rfc9727'
    assert.equal(headers.get('content-type'), `application/linkset+json; profile="${profile}"`)
  }
})

test('C-14: the self-description has exactly its six members, links as plain absolute strings', async () => {
  const { status, json } = await request('/api/waitlist')
  assert.equal(status, 200)
  assert.deepEqual(json, {
    name: env.SERVICE_NAME,
    description: env.SERVICE_DESCRIPTION,
    methods: ['GET', 'POST'],
    'service-desc': `${b}/api/openapi.json`,
    'service-doc': `${b}/docs/api`,
    status: `${b}/api/health`,
  })
})

test('C-24, C-28: it is application/json without a charset, whatever Accept says', async () => {
  for (const accept of ['*/*', 'text/html', 'application/xml;q=0.5', 'application/json;q=0', 'nonsense']) {
    const { status, headers } = await request('/api/waitlist', { headers: { accept } })
    assert.equal(status, 200, accept)
    assert.equal(headers.get('content-type'), 'application/json')
  }
})

test('C-3, C-8, C-11…C-13, C-94: GET and HEAD of each resource have the links that belong to it, and no others', async () => {
  for (const [path, status, link] of [
    [CATALOG, 200, `${announcement}, <${b}/api/waitlist>; rel="item"`],
    ['/api/waitlist', 200, description],
    ['/api/openapi.json', 200, announcement],
    ['/docs/api', 200, announcement],
    ['/', 302, `${announcement}, ${description}`],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await request(path, { method })
      assert.deepEqual([answer.status, answer.headers.get('link')], [status, link], `${method} ${path}`)
    }
  }
})

test('C-11: the root redirects to the documentation, and is never stored', async () => {
  const { headers, text } = await request('/')
  assert.equal(text, '')
  assert.equal(headers.get('location'), `${b}/docs/api`)
  assert.equal(headers.get('cache-control'), 'no-store')
})

test('C-15: each link leads to what its type says', async () => {
  for (const [, href, type] of description.matchAll(/<([^>]+)>; rel="[^"]+"; type="([^"]+)"/g)) {
    const target = await request(href!.slice(b.length))
    assert.equal(target.status, 200)
    assert.equal(target.headers.get('content-type')!.split(';')[0], type)
  }
})

test('C-4, C-63: the document knows every path that answers', async () => {
  const documented = Object.keys((await request('/api/openapi.json')).json.paths)
  assert.deepEqual(documented.sort(), [CATALOG, '/api/health', '/api/openapi.json', '/api/waitlist', '/docs/api'])
})

test('C-94, C-95, C-97: what scanners look for and this service does not have is a 404, never a page', async () => {
  const wellKnown = ['oauth-authorization-server', 'mcp/server-card.json', 'agent-card.json', '']
  const files = ['robots.txt', 'sitemap.xml', 'favicon.ico', 'openapi.json', 'llms.txt', 'api', 'docs']
  for (const path of [...wellKnown.map(name => `/.well-known/${name}`), ...files.map(name => `/${name}`)]) {
    assert.equal((await request(path)).status, 404, path)
  }
})

test('C-45: links come from BASE_URL, never from what a request says about the host', async t => {
  const port = await freePort()
  const base = 'https://waitlist.example.org'
  await startService(t, { BASE_URL: `${base}/`, PORT: String(port) })
  const { request } = await clientOf({ baseUrl: `http://127.0.0.1:${port}` })
  const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'ftp', forwarded: 'host=evil.example' }
  for (const path of ['/api/waitlist', CATALOG, '/api/openapi.json', '/docs/api', '/']) {
    const answer = await request(path, { headers })
    const said = JSON.stringify([...answer.headers]) + answer.text
    assert.ok(said.includes(`${base}/`), path)
    assert.doesNotMatch(said, /evil|ftp:|127\.0\.0\.1|localhost/, path)
  }
})

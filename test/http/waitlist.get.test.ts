import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { freePort } from '../harness/port.ts'
import { startService } from '../harness/service.ts'

test('C-14: the self-description has exactly its six members, links as plain absolute strings', async t => {
  const env = { SERVICE_NAME: 'Moonbase', SERVICE_DESCRIPTION: 'Early access to "Moonbase" – für alle' }
  const { request, baseUrl } = await clientOf(await startService(t, env))
  const { status, json } = await request('/api/waitlist')
  assert.equal(status, 200)
  assert.deepEqual(json, {
    name: 'Moonbase',
    description: 'Early access to "Moonbase" – für alle',
    methods: ['GET', 'POST'],
    'service-desc': `${baseUrl}/api/openapi.json`,
    'service-doc': `${baseUrl}/docs/api`,
    status: `${baseUrl}/api/health`,
  })
})

test('C-12, C-13: one Link field with exactly three relations, on GET and on HEAD', async t => {
  const { request, baseUrl: b } = await clientOf(await startService(t))
  for (const method of ['GET', 'HEAD']) {
    const { headers } = await request('/api/waitlist', { method })
    assert.equal(
      headers.get('link'),
      `<${b}/api/openapi.json>; rel="service-desc"; type="application/json", ` +
        `<${b}/docs/api>; rel="service-doc"; type="text/html", ` +
        `<${b}/api/health>; rel="status"; type="application/json"`,
    )
  }
})

test('C-15: each link leads to what its type says', async t => {
  const { request, baseUrl } = await clientOf(await startService(t))
  const { headers } = await request('/api/waitlist')
  const links = [...headers.get('link')!.matchAll(/<([^>]+)>; rel="[^"]+"; type="([^"]+)"/g)]
  assert.equal(links.length, 3)
  for (const [, href, type] of links) {
    assert.ok(href!.startsWith(baseUrl))
    const target = await request(href!.slice(baseUrl.length))
    assert.equal(target.status, 200)
    assert.equal(target.headers.get('content-type')!.split(';')[0], type)
  }
})

test('C-28, C-24: it is application/json without a charset, whatever Accept says', async t => {
  const { request } = await clientOf(await startService(t))
  for (const accept of ['*/*', 'text/html', 'application/xml;q=0.5', 'application/json;q=0', 'nonsense']) {
    const { status, headers } = await request('/api/waitlist', { headers: { accept } })
    assert.equal(status, 200, accept)
    assert.equal(headers.get('content-type'), 'application/json')
  }
})

test('C-45: links come from BASE_URL, never from what a request says about the host', async t => {
  const port = await freePort()
  const base = 'https://waitlist.example.org'
  await startService(t, { BASE_URL: `${base}/`, PORT: String(port) })
  const { request } = await clientOf({ baseUrl: `http://127.0.0.1:${port}` })
  const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'ftp', forwarded: 'host=evil.example' }
  for (const path of ['/api/waitlist', '/.well-known/api-catalog', '/api/openapi.json', '/docs/api', '/']) {
    const answer = await request(path, { headers })
    const said = JSON.stringify([...answer.headers]) + answer.text
    assert.ok(said.includes(`${base}/`), path)
    assert.doesNotMatch(said, /evil|ftp:|127\.0\.0\.1|localhost/, path)
  }
})

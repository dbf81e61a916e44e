import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const CATALOG = '/.well-known/api-catalog'
const env = { SERVICE_NAME: 'Moonbase', SERVICE_DESCRIPTION: 'Early access to "Moonbase" – für alle' }
const { request, baseUrl: b } = await clientOf(await startService(wholeFile, env))

const descriptionLinks =
  `<${b}/api/openapi.json>; rel="service-desc"; type="application/json", ` +
  `<${b}/docs/api>; rel="service-doc"; type="text/html", ` +
  `<${b}/api/health>; rel="status"; type="application/json"`
const catalogLink = `<${b}${CATALOG}>; rel="api-catalog"; type="application/linkset+json"`

test('C-1…C-15, C-24, C-28: the catalog and the self-description name what describes the API, whatever Accept says', async () => {
  const descriptions = {
    'service-desc': `${b}/api/openapi.json`,
    'service-doc': `${b}/docs/api`,
    status: `${b}/api/health`,
  }
  const types = { 'service-desc': 'application/json', 'service-doc': 'text/html', status: 'application/json' } as const
  const linkset = [
    {
      anchor: `${b}/api/waitlist`,
      ...Object.fromEntries(
        Object.entries(types).map(([rel, type]) => [rel, [{ href: descriptions[rel as keyof typeof types], type }]]),
      ),
    },
    { anchor: b + CATALOG, item: [{ href: `${b}/api/waitlist`, type: 'application/json' }] },
  ]
  const self = {
    name: env.SERVICE_NAME,
    description: env.SERVICE_DESCRIPTION,
    methods: ['GET', 'POST'],
    ...descriptions,
  }
  for (const accept of ['*/*', 'text/html']) {
    const catalog = await request(CATALOG, { headers: { accept } })
    const type = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
    assert.deepEqual([catalog.headers.get('content-type'), catalog.json], [type, { linkset }])
    const { headers, json } = await request('/api/waitlist', { headers: { accept } })
    assert.deepEqual([headers.get('content-type'), json], ['application/json', self])
  }
  for (const [rel, type] of Object.entries(types)) {
    const target = await request(descriptions[rel as keyof typeof types].slice(b.length))
    assert.deepEqual([target.status, target.headers.get('content-type')!.split(';')[0]], [200, type])
  }
})

test('C-3, C-11…C-13, C-94: GET and HEAD of each resource have the links that belong to it, and no others', async () => {
  for (const [path, status, link] of [
    [CATALOG, 200, `${catalogLink}, <${b}/api/waitlist>; rel="item"`],
    ['/api/waitlist', 200, descriptionLinks],
    ['/api/openapi.json', 200, catalogLink],
    ['/docs/api', 200, catalogLink],
    ['/', 302, `${catalogLink}, ${descriptionLinks}`],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await request(path, { method })
      assert.deepEqual([answer.status, answer.headers.get('link')], [status, link], `${method} ${path}`)
      if (path === '/') assert.equal(answer.headers.get('location'), `${b}/docs/api`)
    }
  }
})

test('C-9, C-32, C-34: a document may be kept for its time; its tag is the hash of its bytes, and spares them', async () => {
  for (const [path, cacheControl] of [
    ['/api/waitlist', 'public, max-age=300'],
    [CATALOG, 'public, max-age=3600'],
    ['/api/openapi.json', 'public, max-age=3600'],
    ['/docs/api', 'public, max-age=3600'],
  ] as const) {
    const full = await request(path)
    const etag = full.headers.get('etag')!
    assert.equal(full.headers.get('cache-control'), cacheControl)
    assert.equal(etag, `"${createHash('sha256').update(full.text).digest('base64url')}"`)
    for (const ifNoneMatch of [etag, `W/${etag}`, '*', `"a",W/"b" ,\t${etag},"c"`]) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers, text } = await request(path, { method, headers: { 'if-none-match': ifNoneMatch } })
        assert.deepEqual([status, text], [304, ''], `${method} ${ifNoneMatch}`)
        for (const name of ['etag', 'cache-control', 'vary', 'link', 'access-control-allow-origin'])
          assert.equal(headers.get(name), full.headers.get(name), name)
        assert.deepEqual([headers.get('content-type'), headers.get('content-length')], [null, null])
      }
    }
    for (const ifNoneMatch of ['"x"', etag.slice(1, -1), '', `"${etag}"`])
      assert.equal((await request(path, { headers: { 'if-none-match': ifNoneMatch } })).status, 200, ifNoneMatch)
    const ignored = { 'if-modified-since': new Date().toUTCString(), range: 'bytes=0-3', 'accept-encoding': 'gzip' }
    const answer = await request(path, { headers: ignored })
    assert.deepEqual([answer.status, answer.headers.get('content-encoding')], [200, null])
  }
})

test('C-45: links come from BASE_URL, never from what a request says about the host', async t => {
  const base = 'https://waitlist.example.org'
  const { origin } = await startService(t, { BASE_URL: `${base}/` })
  const { request } = await clientOf({ baseUrl: origin })
  const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'ftp', forwarded: 'host=evil.example' }
  for (const path of ['/api/waitlist', CATALOG, '/api/openapi.json', '/docs/api', '/']) {
    const answer = await request(path, { headers })
    const received = JSON.stringify([...answer.headers]) + answer.text
    assert.ok(received.includes(`${base}/`), path)
    assert.doesNotMatch(received, /evil|ftp:|127\.0\.0\.1|localhost/, path)
  }
})

// biome-ignore lint/suspicious/noExplicitAny: the document is read as a stranger would read it
type Any = any

const document: Any = (await request('/api/openapi.json')).json

/** Every object in the document, with the way to it. */
function* objectsIn(value: Any, path: string[] = []): Generator<[path: string[], object: Any]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value]
  for (const [key, each] of Object.entries(value)) yield* objectsIn(each, [...path, key])
}

test('C-20, C-63, C-80…C-83, C-86: the document says who and where, and every endpoint with all that it can answer', () => {
  const { openapi, info, servers, externalDocs, security } = document
  assert.match(openapi, /^3\.1\.\d+$/)
  assert.deepEqual([info.title, info.license.identifier], ['Moonbase API', 'MIT'])
  assert.deepEqual([servers[0].url, externalDocs.url, security], [b, `${b}/docs/api`, []])
  const operations = Object.entries<Any>(document.paths).flatMap(([path, item]) =>
    Object.entries<Any>(item).map(([method, operation]): [string, Any] => [`${method} ${path}`, operation]),
  )
  const cacheable = ['200', '304', '4XX', '500']
  assert.deepEqual(
    Object.fromEntries(operations.map(([name, { responses }]) => [name, Object.keys(responses).sort()])),
    {
      'post /api/waitlist': ['200', '400', '413', '415', '429', '4XX', '500', '502'],
      'get /api/waitlist': cacheable,
      'get /api/health': ['200', '4XX', '500', '503'],
      'get /.well-known/api-catalog': cacheable,
      'get /api/openapi.json': cacheable,
      'get /docs/api': cacheable,
    },
  )
  assert.equal(document.paths['/api/waitlist'].post.requestBody.required, true)
  for (const [name, { responses }] of operations) {
    assert.equal(responses[304]?.content, undefined, name)
    for (const [status, { content }] of Object.entries<Any>(responses)) {
      if (!/^[45]/.test(status)) continue
      assert.deepEqual(content['application/json'].schema, { $ref: '#/components/schemas/Error' })
    }
  }
})

test('C-85, C-88: success members are optional and open, an error has exactly one member, all that we send is bounded', () => {
  const { SignupRequest: _, ...sent } = document.components.schemas
  const members = {
    SignupResult: ['success', 'message', 'contactId', 'alreadyExisted', 'automationTriggered'],
    SelfDescription: ['name', 'description', 'methods', 'service-desc', 'service-doc', 'status'],
    HealthReport: ['status', 'service', 'description', 'time'],
  }
  for (const [name, names] of Object.entries(members)) {
    const { properties, required, additionalProperties } = sent[name]
    assert.deepEqual([Object.keys(properties), required, additionalProperties], [names, undefined, undefined])
  }
  assert.deepEqual([sent.Error.required, sent.Error.additionalProperties], [['error'], false])
  for (const [path, { type, maxLength, const: constant, maxItems }] of objectsIn(sent)) {
    if (type === 'string') assert.ok(maxLength > 0 || constant !== undefined, path.join('.'))
    if (type === 'array') assert.ok(maxItems > 0, path.join('.'))
  }
})

/** As it is run in public: Redocly calls localhost and example.com a mistake. */
async function published(t: Parameters<typeof startService>[0], env: Record<string, string> = {}): Promise<Any> {
  const { origin } = await startService(t, { BASE_URL: 'https://waitlist.moonbase.app', ...env })
  return (await fetch(`${origin}/api/openapi.json`)).json()
}

const everything = {
  ...{ TRACK_SOURCES: 'true', CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true', DISCLOSE_MEMBERSHIP: 'false' },
  ...{ CONFIRM: 'mail', SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'hello@moonbase.app' },
  MESSAGES_FILE: new URL('../../examples/messages/messages.json', import.meta.url).pathname,
}

test('C-82, C-87: Redocly finds nothing by its strictest rules, and every example is valid against its schema', async t => {
  const document = await published(t, everything)
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config })
  assert.deepEqual(
    problems.map(({ ruleId, location }) => `${ruleId} at ${location[0]?.pointer}`),
    [],
  )
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  let count = 0
  for (const [path, { schema, example }] of objectsIn(document)) {
    if (example === undefined) continue
    const validate = ajv.compile({ ...schema, components: document.components })
    assert.ok(validate(example), `${path.join('.')}: ${JSON.stringify(validate.errors)}`)
    count++
  }
  assert.ok(count >= 15, `${count} examples`)
})

test('one document is true for every configuration: only a challenge of our own adds its endpoint', async t => {
  const [nothing, all] = [await published(t), await published(t, everything)]
  delete all.paths['/api/challenge']
  delete all.components.schemas.Challenge
  assert.deepEqual(all, nothing)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const CATALOG = '/.well-known/api-catalog'
const env = { SERVICE_NAME: 'Moonbase', SERVICE_DESCRIPTION: 'Early access to "Moonbase" – für alle' }
const { request, baseUrl: b } = await clientOf(await startService(wholeFile, env))

const description =
  `<${b}/api/openapi.json>; rel="service-desc"; type="application/json", ` +
  `<${b}/docs/api>; rel="service-doc"; type="text/html", ` +
  `<${b}/api/health>; rel="status"; type="application/json"`
const announcement = `<${b}${CATALOG}>; rel="api-catalog"; type="application/linkset+json"`

test('C-1…C-7, C-10: the catalog is a linkset of the API first and itself second, whatever Accept says', async () => {
  for (const accept of ['*/*', 'application/linkset+json, application/json', 'text/html']) {
    const { status, headers, json } = await request(CATALOG, { headers: { accept } })
    const type = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
    assert.deepEqual([status, headers.get('content-type')], [200, type])
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
  }
})

test('C-14, C-24, C-28: the self-description has its six members, as application/json whatever Accept says', async () => {
  const { status, headers, json } = await request('/api/waitlist', { headers: { accept: 'text/html' } })
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/json'])
  assert.deepEqual(json, {
    name: env.SERVICE_NAME,
    description: env.SERVICE_DESCRIPTION,
    methods: ['GET', 'POST'],
    'service-desc': `${b}/api/openapi.json`,
    'service-doc': `${b}/docs/api`,
    status: `${b}/api/health`,
  })
})

test('C-3, C-11…C-13, C-94: GET and HEAD of each resource have the links that belong to it, and no others', async () => {
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
      if (path === '/') assert.equal(answer.headers.get('location'), `${b}/docs/api`)
    }
  }
})

test('C-15: each link leads to what its type says', async () => {
  for (const [, href, type] of description.matchAll(/<([^>]+)>; rel="[^"]+"; type="([^"]+)"/g)) {
    const target = await request(href!.slice(b.length))
    assert.deepEqual([target.status, target.headers.get('content-type')!.split(';')[0]], [200, type])
  }
})

test('C-94, C-95, C-97: what scanners look for and this service does not have is a 404', async () => {
  const wellKnown = ['security.txt', 'oauth-authorization-server', 'mcp/server-card.json', 'agent-card.json', '']
  const files = ['robots.txt', 'sitemap.xml', 'favicon.ico', 'openapi.json', 'llms.txt', 'api', 'docs']
  for (const path of [...wellKnown.map(name => `/.well-known/${name}`), ...files.map(name => `/${name}`)]) {
    assert.equal((await request(path)).status, 404, path)
  }
})

test('C-45: links come from BASE_URL, never from what a request says about the host', async t => {
  const base = 'https://waitlist.example.org'
  const { origin } = await startService(t, { BASE_URL: `${base}/` })
  const { request } = await clientOf({ baseUrl: origin })
  const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'ftp', forwarded: 'host=evil.example' }
  for (const path of ['/api/waitlist', CATALOG, '/api/openapi.json', '/docs/api', '/']) {
    const answer = await request(path, { headers })
    const said = JSON.stringify([...answer.headers]) + answer.text
    assert.ok(said.includes(`${base}/`), path)
    assert.doesNotMatch(said, /evil|ftp:|127\.0\.0\.1|localhost/, path)
  }
})

// biome-ignore lint/suspicious/noExplicitAny: the document is read as a stranger would read it
type Any = any

const document: Any = (await request('/api/openapi.json')).json
const operations: [name: string, operation: Any][] = Object.entries<Any>(document.paths).flatMap(([path, item]) =>
  Object.entries<Any>(item).map(([method, operation]): [string, Any] => [`${method} ${path}`, operation]),
)

/** Every object in the document, with the way to it. */
function* objectsIn(value: Any, path: string[] = []): Generator<[path: string[], object: Any]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value]
  for (const [key, each] of Object.entries(value)) yield* objectsIn(each, [...path, key])
}

test('C-80, C-81: its root says who, where and under which licence, and that there is no authentication', () => {
  assert.match(document.openapi, /^3\.1\.\d+$/)
  assert.equal(document.info.title, 'Moonbase API')
  assert.equal(document.info.license.identifier, 'MIT')
  assert.deepEqual([document.servers[0].url, document.externalDocs.url], [b, `${b}/docs/api`])
  assert.deepEqual(document.security, [])
  assert.equal(document.jsonSchemaDialect, undefined)
  for (const [path, object] of objectsIn(document)) assert.equal(object.$id, undefined, path.join('.'))
})

test('C-20, C-63, C-82, C-83, C-86: every endpoint is there with all that it can answer, and no default, link or webhook', () => {
  assert.doesNotMatch(JSON.stringify(document), /"(?:links|webhooks)":/)
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
      assert.deepEqual(Object.keys(content), ['application/json'])
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

test('C-82: every example is valid against its schema', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  let count = 0
  const assertValid = (schema: Any, value: unknown, where: string) => {
    const validate = ajv.compile({ ...schema, components: document.components })
    assert.ok(validate(value), `${where}: ${JSON.stringify(validate.errors)}`)
    count++
  }
  for (const [path, object] of objectsIn(document)) {
    const where = path.join('.')
    if (Array.isArray(object.examples)) for (const each of object.examples) assertValid(object, each, where)
    else if (object.schema && object.examples) {
      for (const { value } of Object.values<Any>(object.examples)) assertValid(object.schema, value, where)
    }
  }
  assert.ok(count >= 15, `${count} examples`)
})

/** As it is run in public: Redocly calls localhost and example.com a mistake. */
async function published(t: Parameters<typeof startService>[0], env: Record<string, string> = {}): Promise<string> {
  const { origin } = await startService(t, { BASE_URL: 'https://waitlist.moonbase.app', ...env })
  return (await fetch(`${origin}/api/openapi.json`)).text()
}

const everything = {
  ...{ TRACK_SOURCES: 'true', CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true', DISCLOSE_MEMBERSHIP: 'false' },
  ...{ CONFIRM: 'mail', SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'hello@moonbase.app' },
  MESSAGES_FILE: new URL('../../examples/messages/messages.json', import.meta.url).pathname,
}

test('C-87: Redocly finds nothing by its strictest rules, and does find a mistake', async t => {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const found = async (source: string) => {
    const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
    return problems.map(({ ruleId, location }) => `${ruleId} at ${location[0]?.pointer}`)
  }
  const source = await published(t, everything)
  assert.deepEqual(await found(source), [])
  const broken = JSON.parse(source)
  delete broken.paths['/api/health'].get.operationId
  assert.deepEqual(await found(JSON.stringify(broken)), [
    'operation-operationId at #/paths/~1api~1health/get/operationId',
  ])
})

test('one document is true for every configuration: only a challenge of our own adds its endpoint', async t => {
  const [nothing, all] = [JSON.parse(await published(t)), JSON.parse(await published(t, everything))]
  delete all.paths['/api/challenge']
  delete all.components.schemas.Challenge
  assert.deepEqual(all, nothing)
})

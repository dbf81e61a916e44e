import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: the document is read as a stranger would read it
type Any = any

async function documentOf(t: typeof wholeFile, env: Record<string, string> = {}) {
  const { request, baseUrl } = await clientOf(await startService(t, env))
  const { status, headers, json } = await request('/api/openapi.json')
  assert.equal(status, 200)
  return { document: json as Any, headers, baseUrl }
}

const operationsOf = (document: Any): [path: string, method: string, operation: Any][] =>
  Object.entries<Any>(document.paths).flatMap(([path, item]) =>
    Object.entries<Any>(item).map(([method, operation]): [string, string, Any] => [path, method, operation]),
  )

const { document, headers, baseUrl } = await documentOf(wholeFile, { SERVICE_NAME: 'Moonbase' })

/** Every object in the document, with the way to it. */
function* objectsIn(value: Any, path: string[] = []): Generator<[path: string[], object: Any]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value]
  for (const [key, each] of Object.entries(value)) yield* objectsIn(each, [...path, key])
}

test('C-80: the document is OpenAPI 3.1 and plain application/json', () => {
  assert.match(document.openapi, /^3\.1\.\d+$/)
  assert.equal(headers.get('content-type'), 'application/json')
})

test('C-81: its root says who, where and under which licence, and that there is no authentication', () => {
  for (const member of ['title', 'version', 'summary', 'description']) {
    assert.ok(document.info[member].length > 0, member)
  }
  assert.match(document.info.title, /Moonbase/)
  assert.equal(document.info.license.identifier, 'MIT')
  assert.deepEqual(
    document.servers.map(({ url }: Any) => url),
    [baseUrl],
  )
  assert.deepEqual(document.security, [])
  assert.equal(document.externalDocs.url, `${baseUrl}/docs/api`)
  assert.ok(document.tags.every(({ description }: Any) => description.length > 0))
  assert.equal(document.jsonSchemaDialect, undefined)
  for (const [path, object] of objectsIn(document)) assert.equal(object.$id, undefined, path.join('.'))
})

test('C-82: each operation has an id, a summary, a description and one of the tags', async () => {
  const tags = document.tags.map(({ name }: Any) => name)
  const operations = operationsOf(document)
  assert.deepEqual(operations.map(([path, method]) => `${method} ${path}`).sort(), [
    'get /.well-known/api-catalog',
    'get /api/health',
    'get /api/openapi.json',
    'get /api/waitlist',
    'get /docs/api',
    'post /api/waitlist',
  ])
  for (const [path, method, { operationId, summary, description, tags: own, parameters }] of operations) {
    assert.match(operationId, /^[A-Za-z]+$/, `${method} ${path}`)
    assert.ok(summary && description)
    assert.equal(own.length, 1)
    assert.ok(tags.includes(own[0]))
    assert.equal(parameters, undefined)
  }
  assert.equal(new Set(operations.map(([, , { operationId }]) => operationId)).size, operations.length)
  assert.equal(document.paths['/api/waitlist'].post.requestBody.required, true)
})

test('C-82: every example is valid against its schema', async t => {
  for (const env of [{}, { CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true' }, { DISCLOSE_MEMBERSHIP: 'false' }]) {
    assertExamplesValid((await documentOf(t, env)).document)
  }
})

function assertExamplesValid(document: Any): void {
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
}

test('C-20, C-83: each operation declares what it can answer, and no default', async () => {
  const statuses = Object.fromEntries(
    operationsOf(document).map(([path, method, { responses }]) => [`${method} ${path}`, Object.keys(responses).sort()]),
  )
  const cacheable = ['200', '304', '429', '4XX', '500']
  assert.deepEqual(statuses, {
    'post /api/waitlist': ['200', '400', '413', '415', '429', '4XX', '500', '502'],
    'get /api/waitlist': cacheable,
    'get /api/health': ['200', '4XX', '500', '503'],
    'get /.well-known/api-catalog': cacheable,
    'get /api/openapi.json': cacheable,
    'get /docs/api': cacheable,
  })
  for (const [path, , { responses }] of operationsOf(document)) {
    assert.equal(responses[304]?.content, undefined, path)
    for (const [status, { content }] of Object.entries<Any>(responses)) {
      if (!/^[45]/.test(status)) continue
      assert.deepEqual(Object.keys(content), ['application/json'])
      assert.deepEqual(content['application/json'].schema, { $ref: '#/components/schemas/Error' })
    }
  }
})

test('C-84, C-88: the fields of each answer are declared, the quota on every answer of POST', async () => {
  const { post, get } = document.paths['/api/waitlist']
  for (const status of ['200', '400', '413', '415', '429', '500', '502']) {
    const { headers } = post.responses[status]
    assert.equal(headers.RateLimit.schema.type, 'string', status)
    assert.equal(headers['RateLimit-Policy'].schema.type, 'string', status)
    assert.deepEqual(headers['Cache-Control'].schema.const, 'no-store')
  }
  const { schema, required } = post.responses[429].headers['Retry-After']
  assert.deepEqual([schema.type, schema.minimum, required], ['integer', 1, true])
  assert.equal(post.responses[200].headers['Set-Cookie'].required, true)
  assert.equal(get.responses[200].headers.Link.required, true)
  const health = document.paths['/api/health'].get.responses
  for (const status of [200, 503]) {
    assert.equal(health[status].headers['Cache-Control'].required, true)
    assert.equal(health[status].headers['Cache-Control'].schema.const, 'no-store')
  }
})

test('C-85: success members are optional and open, an error has exactly one member', () => {
  const { SignupResult, SelfDescription, HealthReport, Error: error } = document.components.schemas
  const members = [
    [SignupResult, ['success', 'message', 'contactId', 'alreadyExisted', 'automationTriggered']],
    [SelfDescription, ['name', 'description', 'methods', 'service-desc', 'service-doc', 'status']],
    [HealthReport, ['status', 'service', 'description', 'time']],
  ]
  for (const [schema, names] of members) {
    assert.deepEqual(Object.keys(schema.properties), names)
    assert.equal(schema.required, undefined)
    assert.equal(schema.additionalProperties, undefined)
  }
  assert.deepEqual(error.required, ['error'])
  assert.equal(error.additionalProperties, false)
  assert.equal(error.properties.error.minLength, 1)
})

test('C-86: it declares no links and no webhooks', async () => {
  assert.equal(document.webhooks, undefined)
  for (const [path, object] of objectsIn(document)) assert.ok(!('links' in object), path.join('.'))
})

test('C-88: strings and arrays that we send are bounded', async () => {
  for (const [path, object] of objectsIn(document.components.schemas)) {
    const where = path.join('.')
    if (path[0] === 'SignupRequest') continue // bounded by its patterns, since padding is legal
    if (object.type === 'string') assert.ok(object.maxLength > 0 || object.const !== undefined, where)
    if (object.type === 'array') assert.ok(object.maxItems > 0, where)
    if (object.type === 'integer') assert.ok(object.format !== undefined, where)
  }
})

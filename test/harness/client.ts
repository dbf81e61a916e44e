import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly json: any
}

export interface Client {
  readonly baseUrl: string
  request(path: string, init?: RequestInit): Promise<Answer>
  /** `POST /api/waitlist` with a JSON body; a string is sent as it is. */
  signUp(body: unknown, headers?: Record<string, string>): Promise<Answer>
}

/** Talks to a service over a real socket. Every answer is held against the service's own OpenAPI document. */
export async function clientOf({ baseUrl }: { readonly baseUrl: string }): Promise<Client> {
  const document = (await (await fetch(`${baseUrl}/api/openapi.json`)).json()) as ApiDocument
  const request = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(baseUrl + path, { redirect: 'manual', ...init })
    const { status, headers } = response
    const text = await response.text()
    assertDocumented(document, init.method ?? 'GET', path.split('?')[0]!, { status, headers, body: text })
    const json = headers.get('content-type')?.includes('json') ? JSON.parse(text || 'null') : undefined
    const answer = { status, headers, text, json }
    if (status >= 400 && init.method !== 'HEAD') assertRefused(answer, status)
    return answer
  }
  return {
    baseUrl,
    request,
    signUp: (body, headers = {}) =>
      request('/api/waitlist', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  }
}

/** Holds an answer against the one shape that every error has (C-19), and against its sentence where that is known. */
export function assertRefused({ status, headers, text, json }: Answer, expected: number, sentence?: string): void {
  assert.equal(status, expected, text)
  assert.equal(headers.get('content-type'), 'application/json')
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.deepEqual(Object.keys(json), ['error'])
  assert.equal(typeof json.error, 'string')
  assert.notEqual(json.error, '')
  assert.equal(headers.get('set-cookie'), null)
  // A page reads here what a person reads in the sentence.
  assert.equal(headers.get('waitlist-signup'), json.error.includes('your signup is saved') ? 'saved' : null)
  if (sentence !== undefined) assert.equal(json.error, sentence)
}

/** As much of an OpenAPI document as is needed to hold answers against it. */
export interface ApiDocument {
  readonly paths: Record<string, Record<string, { responses: Record<string, ApiResponse> }>>
  readonly components: { readonly schemas: Record<string, object> }
}
interface ApiResponse {
  readonly headers?: Record<string, { required?: boolean; schema: object }>
  readonly content?: Record<string, { schema: object }>
}

/** Fields that every answer may have and that the document leaves to HTTP, to security practice and to CORS. */
const undocumented = new Set([
  'allow',
  'access-control-allow-credentials',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'connection',
  'content-length',
  'content-security-policy',
  'content-type',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'date',
  'keep-alive',
  'permissions-policy',
  'referrer-policy',
  'strict-transport-security',
  'vary',
  'x-content-type-options',
  'x-frame-options',
  'x-robots-tag',
])

export interface ReceivedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

/**
 * Holds an answer against the document: an undeclared status, field, media type or body fails.
 * Paths that the document does not know are not judged.
 */
export function assertDocumented(document: ApiDocument, method: string, path: string, answer: ReceivedAnswer): void {
  const operation = document.paths[path]?.[method === 'HEAD' ? 'get' : method.toLowerCase()]
  if (operation === undefined) return
  const { status, headers, body } = answer
  const where = `${method} ${path} answered ${status}`
  const declared = operation.responses[status] ?? operation.responses[`${String(status)[0]}XX`]
  assert.ok(declared, `${where}, which the document does not declare`)

  const fields = new Map(Object.entries(declared.headers ?? {}).map(([name, header]) => [name.toLowerCase(), header]))
  for (const [name, header] of fields) {
    const value = headers.get(name)
    if (value === null) assert.ok(!header.required, `${where} without the field ${name}`)
    else assertValid(document, header.schema, fieldValue(header.schema, value), `${where}: field ${name}`)
  }
  for (const name of headers.keys()) {
    assert.ok(fields.has(name) || undocumented.has(name), `${where} with the undeclared field ${name}`)
  }

  if (method === 'HEAD' || declared.content === undefined) return assert.equal(body, '', `${where} with a body`)
  const type = headers.get('content-type') ?? ''
  const media = Object.entries(declared.content).find(([each]) => each.split(';')[0] === type.split(';')[0])
  assert.ok(media, `${where} as ${type}, which the document does not declare`)
  const value = type.includes('json') ? JSON.parse(body) : body
  assertValid(document, media[1].schema, value, `${where}: body`)
}

const fieldValue = (schema: object, text: string) =>
  'type' in schema && schema.type === 'integer' ? Number(text) : text

function assertValid(document: ApiDocument, schema: object, value: unknown, where: string): void {
  const validate = validatorOf(document, schema)
  assert.ok(validate(value), `${where}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(value)}`)
}

type Validate = ReturnType<Ajv2020['compile']>
const ajv = new Ajv2020({ strict: false, allErrors: true, addUsedSchema: false })
addFormats.default(ajv)
/** By the schema, and by its text: each service of a test has a document of its own, and most say the same. */
const bySchema = new WeakMap<object, Validate>()
const byText = new Map<string, Validate>()

function validatorOf(document: ApiDocument, schema: object): Validate {
  const known = bySchema.get(schema)
  if (known !== undefined) return known
  const whole = { ...schema, components: document.components }
  const text = JSON.stringify(whole)
  const validate = byText.get(text) ?? ajv.compile(whole)
  byText.set(text, validate)
  bySchema.set(schema, validate)
  return validate
}

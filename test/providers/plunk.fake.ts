import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, object, taking, text, vendorApi, yesOrNo } from '../harness/vendor-api.ts'

const SECRET = 'sk_of-the-test'
const PUBLIC = 'pk_of-the-test'

export const plunkSettings = (url: string) => ({
  PLUNK_SECRET_KEY: SECRET,
  PLUNK_PUBLIC_KEY: PUBLIC,
  PLUNK_BASE_URL: url,
})

interface Kept {
  readonly id: string
  readonly email: string
  readonly subscribed: boolean
  readonly data: object | null
  readonly createdAt: string
  readonly updatedAt: string
}

/*
 * Facts of https://docs.useplunk.com/openapi.json (1.0.0). The look-up is not in it: its facts, and that 402 and 422 exist
 * for contacts, are from the source (apps/api).
 */
const addresses = { ...listOf(text), minItems: 1, maxItems: 500 }

export const plunkError = (statusCode: number, code: string, more: object = {}): Said => ({
  status: statusCode,
  body: {
    success: false,
    error: { code, message: `Something about ${code}`, statusCode, requestId: 'a-request', ...more },
    timestamp: new Date().toISOString(),
  },
})
export const plunkInvalid = (field: string): Said =>
  plunkError(422, 'VALIDATION_ERROR', { errors: [{ field, message: `Invalid ${field}`, code: 'invalid_string' }] })
export const plunkUsedKey = (originalStatusCode: number | null): Said =>
  plunkError(409, 'IDEMPOTENCY_KEY_REUSED', { details: { originalRequest: 'POST /v1/track', originalStatusCode } })

/** As in Plunk's own source: an upsert that merges, and keys of events that are kept. */
export function plunkFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<Kept>()
  const keys = new Set<string>()
  let ids = 0

  function upsert(email: string, data?: object, subscribed?: boolean): Kept {
    const now = new Date().toISOString()
    const known = contacts.get(email) ?? { id: `contact-${++ids}`, subscribed: true, data: null, createdAt: now }
    const merged = data === undefined ? known.data : { ...known.data, ...data }
    const kept = { ...known, email, data: merged, subscribed: subscribed ?? known.subscribed, updatedAt: now }
    contacts.set(email, kept)
    return kept
  }

  function create({ email, data, subscribed }: Received['json']): Said {
    if (email.startsWith('refused')) return plunkInvalid('email')
    const isUpdate = contacts.has(email)
    const _meta = { isNew: !isUpdate, isUpdate }
    return { status: isUpdate ? 200 : 201, body: { ...upsert(email, data, subscribed), _meta } }
  }

  function track({ headers, json: { event, email } }: Received): Said {
    if (/^(?:email\..*|contact\.(?:un)?subscribed|segment\..*\.(?:entry|exit))$/.test(event))
      return plunkInvalid('event')
    const key = headers['idempotency-key']
    if (key !== undefined && keys.has(key)) return plunkUsedKey(200)
    if (key !== undefined) keys.add(key)
    const { id, updatedAt: timestamp } = upsert(email)
    start(email)
    return { status: 200, body: { success: true, data: { contact: id, event: `event-${++ids}`, timestamp } } }
  }

  function look({ emails }: { readonly emails: readonly string[] }): Said {
    const isThere = (email: string) => contacts.has(email)
    return { status: 200, body: { found: emails.filter(isThere), notFound: emails.filter(each => !isThere(each)) } }
  }

  /** The newest first. */
  function search({ search = '', limit }: Received['query']): Said {
    const found = [...contacts.values()].reverse().filter(({ email }) => email.includes(search))
    const data = found.slice(0, Number(limit))
    return { status: 200, body: { data, total: found.length, hasMore: found.length > data.length } }
  }

  return {
    ...facts,
    answer: vendorApi({
      // Each key is good for its own addresses alone.
      refuses: ({ path, headers }) =>
        headers.authorization === `Bearer ${path === '/v1/track' ? PUBLIC : SECRET}`
          ? undefined
          : plunkError(401, 'INVALID_API_KEY'),
      routes: {
        'GET /contacts': ({ query }) => search(query),
        'POST /contacts/lookup': taking(exactly({ emails: addresses }), ({ json }) => look(json)),
        'POST /contacts': taking(exactly({ email: text }, { subscribed: yesOrNo, data: object() }), ({ json }) =>
          create(json),
        ),
        'DELETE /contacts/{id}': ({ at }) => {
          const kept = find(({ id }) => id === at.id)
          return kept !== undefined && contacts.delete(kept.email) ? { status: 204 } : plunkError(404, 'NOT_FOUND')
        },
        'POST /v1/track': taking(exactly({ email: text, event: text }, { subscribed: yesOrNo, data: object() }), track),
      },
    }),
    had(email) {
      const [createdAt, data] = ['2020-01-01T00:00:00.000Z', { firstName: 'Old' }]
      contacts.set(email, { id: `old-${++ids}`, email, subscribed: false, data, createdAt, updatedAt: createdAt })
    },
  }
}

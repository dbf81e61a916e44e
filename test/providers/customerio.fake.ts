import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'

export const SITE_ID = 'site-id-of-the-test'
export const API_KEY = 'customerio-track-key'
export const APP_KEY = 'customerio-app-key'
export const WRITE_KEY = 'customerio-write-key'
const SEGMENT = '7'

/** All APIs at one address: their paths differ. */
const app = (url: string) => ({
  CUSTOMERIO_APP_KEY: APP_KEY,
  CUSTOMERIO_BASE_URL: url,
  CUSTOMERIO_APP_BASE_URL: url,
})
export const customerioSettings = (url: string) => ({
  CUSTOMERIO_SITE_ID: SITE_ID,
  CUSTOMERIO_API_KEY: API_KEY,
  ...app(url),
})
export const pipelinesSettings = (url: string) => ({
  CUSTOMERIO_API: 'pipelines',
  CUSTOMERIO_API_KEY: WRITE_KEY,
  ...app(url),
})
export const customerioSegment = { CUSTOMERIO_SEGMENT_ID: SEGMENT }
export const customerioDynamicSegment = { CUSTOMERIO_SEGMENT_ID: '8' }

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/*
 * Facts of the documents at https://docs.customer.io/integrations/api/track, /cdp and /app (2026-08), as far as we send or
 * read it. What they leave open is an empty object.
 */
// Any shape of traits would do; ours are plain.
// Our check is a message about nobody.

const done: Said = { status: 200, body: {} }
const wrong = (what: string): Said => ({ status: 400, body: { meta: { errors: [what] } } })
const notFound: Said = { status: 404, body: {} }

/**
 * As documented at https://docs.customer.io/integrations/api: identifying somebody says the same whether they are new or
 * not and sets what is sent; an event with the ULID of an earlier one is ignored. The Pipelines API tells the Track API, and
 * without its strict mode it answers with 200 to what it drops.
 */
export function customerioFake(): VendorFake {
  const { contacts: people, find, start, facts } = contactBook<Record<string, unknown>>()
  const seen = new Set<string>()
  const members = new Set<string>()

  function identify(identifier: string, attributes: object): Said {
    const email = identifier.toLowerCase()
    const known = people.get(email) ?? { cio_id: `a3${String(people.size + 1).padStart(6, '0')}` }
    people.set(email, { ...known, email, ...attributes })
    return done
  }

  /** What is not there is deleted just as well. */
  function remove(identifier: string): Said {
    people.delete(identifier.toLowerCase())
    return done
  }

  function track(identifier: string, { name, id }: { readonly name: string; readonly id?: string }): Said {
    if (name === '') return wrong('name is missing')
    if (id !== undefined && ULID.test(id)) {
      if (seen.has(id)) return done
      seen.add(id)
    }
    start(identifier.toLowerCase())
    return done
  }

  /** A message that is wrong is dropped without a word, but in strict mode. */
  const piped =
    (does: (json: Received['json']) => Said) =>
    ({ headers, json }: Received): Said => {
      const refused = (status: number): Said => (headers['x-strict-mode'] === '1' ? { status, body: {} } : done)
      if (headers.authorization !== basic(`${WRITE_KEY}:`)) return refused(401)
      return json?.userId ? does(json) : refused(400)
    }

  function addTo(segment: string | undefined, { id_type }: Received['query'], ids: readonly string[]): Said {
    if (segment !== SEGMENT) return wrong('segment not found')
    if (id_type !== 'email') return wrong('ids')
    for (const id of ids) {
      identify(id, {})
      members.add(id)
    }
    return done
  }

  function lookUp(email = ''): Said {
    const found = people.get(email.toLowerCase())
    const results = found === undefined ? [] : [{ cio_id: found.cio_id, id: null, email: found.email }]
    return { status: 200, body: { results } }
  }

  /** Attributes are all kept as texts. */
  function attributesOf(id: string | undefined, { id_type }: Received['query']): Said {
    const found = find(({ cio_id }) => id_type === 'cio_id' && cio_id === id)
    if (found === undefined) return notFound
    const texts = Object.fromEntries(Object.entries(found).map(([name, value]) => [name, String(value)]))
    return { status: 200, body: { customer: { id: '', attributes: texts } } }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses({ path, method, headers }) {
        if (method === 'POST' && path.startsWith('/v1/')) return undefined
        const key = path.startsWith('/v1/') ? `Bearer ${APP_KEY}` : basic(`${SITE_ID}:${API_KEY}`)
        return headers.authorization === key ? undefined : { status: 401, body: { meta: { error: 'Unauthorized' } } }
      },
      routes: {
        'PUT /api/v1/customers/{identifier}': ({ at, json }) => identify(at.identifier!, json),
        'DELETE /api/v1/customers/{identifier}': ({ at }) => remove(at.identifier!),
        'POST /api/v1/customers/{identifier}/events': ({ at, json }) => track(at.identifier!, json),
        'POST /api/v1/segments/{segment}/add_customers': ({ at, query, json }) => addTo(at.segment, query, json.ids),
        'GET /api/v1/accounts/region': () => ({ status: 200, body: { region: 'us' } }),
        'POST /v1/identify': piped(({ userId, traits = {} }) => identify(userId, traits)),
        // And a type, which the document calls required, and says that it is set by the path.
        'POST /v1/track': piped(({ userId, event: name, messageId: id }) =>
          name === 'User Deleted' ? remove(userId) : track(userId, { name, id }),
        ),
        'GET /v1/customers': ({ query }) => lookUp(query.email),
        'GET /v1/customers/{id}/attributes': ({ at, query }) => attributesOf(at.id, query),
        'GET /v1/segments/{segment}': ({ at: { segment } }) => {
          const type = segment === SEGMENT ? 'manual' : 'dynamic'
          return segment === '9' ? notFound : { status: 200, body: { segment: { id: Number(segment), type } } }
        },
      },
    }),
    had: email => void identify(email, { first_name: 'Old', created_at: 1_577_836_800 }),
    kept(email) {
      const person = people.get(email)
      return person && { ...person, segments: members.has(email) ? [SEGMENT] : [] }
    },
    joined: email => members.has(email),
  }
}

import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

export const SITE_ID = 'site-id-of-the-test'
export const API_KEY = 'customerio-track-key'
export const APP_KEY = 'customerio-app-key'

export const WRITE_KEY = 'customerio-write-key'
const SEGMENT = 7
const DYNAMIC_SEGMENT = 8

/** All APIs at one address: their paths differ. */
export const customerioSettings = (url: string) => ({
  CUSTOMERIO_SITE_ID: SITE_ID,
  CUSTOMERIO_API_KEY: API_KEY,
  CUSTOMERIO_APP_KEY: APP_KEY,
  CUSTOMERIO_BASE_URL: url,
  CUSTOMERIO_APP_BASE_URL: url,
})

export const pipelinesSettings = (url: string) => ({
  CUSTOMERIO_API: 'pipelines',
  CUSTOMERIO_API_KEY: WRITE_KEY,
  CUSTOMERIO_APP_KEY: APP_KEY,
  CUSTOMERIO_BASE_URL: url,
  CUSTOMERIO_APP_BASE_URL: url,
})

export const customerioSegment = { CUSTOMERIO_SEGMENT_ID: String(SEGMENT) }
export const customerioDynamicSegment = { CUSTOMERIO_SEGMENT_ID: String(DYNAMIC_SEGMENT) }

const BASIC = `Basic ${Buffer.from(`${SITE_ID}:${API_KEY}`).toString('base64')}`
const PIPELINES_BASIC = `Basic ${Buffer.from(`${WRITE_KEY}:`).toString('base64')}`
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const unauthorized: Said = { status: 401, body: { meta: { error: 'Unauthorized request' } } }
const done: Said = { status: 200, body: {} }

/**
 * As documented at https://docs.customer.io/integrations/api: identifying somebody says the same whether they are new or
 * not and sets what is sent; an event with the ULID of an earlier one is ignored. The Pipelines API tells the Track API, and
 * without its strict mode it answers with 200 to what it drops.
 */
export function customerioFake(): VendorFake {
  const people = new Map<string, Record<string, unknown>>()
  const seen = new Set<string>()
  const members = new Set<string>()
  const starts = new Map<string, number>()

  function identify(identifier: string, attributes: Record<string, unknown>): Said {
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

  function track(identifier: string, { name, id }: { name?: unknown; id?: unknown; data?: unknown }): Said {
    if (typeof name !== 'string' || name === '') return { status: 400, body: { meta: { errors: ['name is missing'] } } }
    if (typeof id === 'string' && ULID.test(id)) {
      if (seen.has(id)) return done
      seen.add(id)
    }
    const email = identifier.toLowerCase()
    starts.set(email, (starts.get(email) ?? 0) + 1)
    return done
  }

  function pipe(path: string, headers: Asked['headers'], json: Record<string, unknown>): Said {
    const refused = (status: number): Said => (headers['x-strict-mode'] === '1' ? { status, body: {} } : done)
    if (headers.authorization !== PIPELINES_BASIC) return refused(401)
    const { userId, traits, event, messageId, properties } = json
    if (typeof userId !== 'string' || userId === '') return refused(400)
    if (event === 'User Deleted') return remove(userId)
    if (path === '/v1/identify') return identify(userId, (traits as Record<string, unknown>) ?? {})
    return typeof event === 'string' ? track(userId, { name: event, id: messageId, data: properties }) : refused(400)
  }

  function addTo(segment: number, { id_type }: Asked['query'], { ids }: { ids?: unknown }): Said {
    if (segment !== SEGMENT) return { status: 400, body: { meta: { errors: ['segment not found'] } } }
    if (id_type !== 'email' || !Array.isArray(ids)) return { status: 400, body: { meta: { errors: ['ids'] } } }
    for (const id of ids) {
      identify(id, {})
      members.add(id)
    }
    return done
  }

  function find(email = ''): Said {
    const found = people.get(email.toLowerCase())
    const results = found === undefined ? [] : [{ cio_id: found.cio_id, id: null, email: found.email }]
    return { status: 200, body: { results } }
  }

  /** Attributes are all kept as texts. */
  function attributesOf(id: string, { id_type }: Asked['query']): Said {
    const found = id_type === 'cio_id' ? [...people.values()].find(({ cio_id }) => cio_id === id) : undefined
    if (found === undefined) return { status: 404, body: {} }
    const attributes = Object.fromEntries(Object.entries(found).map(([name, value]) => [name, String(value)]))
    return { status: 200, body: { customer: { id: '', attributes, unsubscribed: false, devices: [] } } }
  }

  return {
    answer({ method, path, segments, headers, query, json }: Asked) {
      if (method === 'POST' && /^\/v1\/(?:identify|track)$/.test(path)) return pipe(path, headers, json ?? {})
      if (path.startsWith('/v1/')) {
        if (headers.authorization !== `Bearer ${APP_KEY}`) return unauthorized
        const [, id] = /^\/v1\/customers\/([^/]+)\/attributes$/.exec(path) ?? []
        if (method === 'GET' && id !== undefined) return attributesOf(id, query)
        const [, segment] = /^\/v1\/segments\/(\d+)$/.exec(path) ?? []
        if (method === 'GET' && [SEGMENT, DYNAMIC_SEGMENT].includes(Number(segment))) {
          const type = Number(segment) === SEGMENT ? 'manual' : 'dynamic'
          return { status: 200, body: { segment: { id: Number(segment), name: 'Waitlist', state: 'finished', type } } }
        }
        return method === 'GET' && path === '/v1/customers' ? find(query.email) : { status: 404, body: {} }
      }
      if (headers.authorization !== BASIC) return unauthorized
      const [identifier = '', events] = path.startsWith('/api/v1/customers/') ? segments.slice(4) : []
      if (method === 'DELETE' && identifier !== '' && events === undefined) return remove(identifier)
      if (method === 'PUT' && identifier !== '' && events === undefined) return identify(identifier, json ?? {})
      if (method === 'POST' && events !== undefined) return track(identifier, json ?? {})
      const [, segment] = /^\/api\/v1\/segments\/(\d+)\/add_customers$/.exec(path) ?? []
      if (method === 'POST' && segment !== undefined) return addTo(Number(segment), query, json ?? {})
      if (method === 'GET' && path === '/api/v1/accounts/region') {
        return { status: 200, body: { url: 'https://track.customer.io', region: 'us', environment_id: 3 } }
      }
      return { status: 404, body: {} }
    },
    had: email => void identify(email, { first_name: 'Old', created_at: 1_577_836_800 }),
    kept(email) {
      const person = people.get(email)
      return person && { ...person, segments: members.has(email) ? [SEGMENT] : [] }
    },
    joined: email => members.has(email),
    count: email => (people.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

export const SITE_ID = 'site-id-of-the-test'
export const API_KEY = 'customerio-track-key'
export const APP_KEY = 'customerio-app-key'

/** Both APIs at one address: their paths differ. */
export const customerioSettings = (url: string) => ({
  CUSTOMERIO_SITE_ID: SITE_ID,
  CUSTOMERIO_API_KEY: API_KEY,
  CUSTOMERIO_APP_KEY: APP_KEY,
  CUSTOMERIO_BASE_URL: url,
  CUSTOMERIO_APP_BASE_URL: url,
})

const BASIC = `Basic ${Buffer.from(`${SITE_ID}:${API_KEY}`).toString('base64')}`
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const unauthorized: Said = { status: 401, body: { meta: { error: 'Unauthorized request' } } }
const done: Said = { status: 200, body: {} }

/**
 * As documented at https://docs.customer.io/integrations/api: identifying somebody says the same whether they are new or
 * not and sets what is sent; an event with the ULID of an earlier one is ignored.
 */
export function customerioFake(): VendorFake {
  const people = new Map<string, Record<string, unknown>>()
  const seen = new Set<string>()
  const starts = new Map<string, number>()

  function identify(identifier: string, attributes: Record<string, unknown>): Said {
    const email = identifier.toLowerCase()
    const known = people.get(email) ?? { cio_id: `a3${String(people.size + 1).padStart(6, '0')}` }
    people.set(email, { ...known, email, ...attributes })
    return done
  }

  function track(identifier: string, { name, id }: { name?: unknown; id?: unknown }): Said {
    if (typeof name !== 'string' || name === '') return { status: 400, body: { meta: { errors: ['name is missing'] } } }
    if (typeof id === 'string' && ULID.test(id)) {
      if (seen.has(id)) return done
      seen.add(id)
    }
    const email = identifier.toLowerCase()
    starts.set(email, (starts.get(email) ?? 0) + 1)
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
    answer({ method, path, headers, query, json }: Asked) {
      if (path.startsWith('/v1/')) {
        if (headers.authorization !== `Bearer ${APP_KEY}`) return unauthorized
        const [, id] = /^\/v1\/customers\/([^/]+)\/attributes$/.exec(path) ?? []
        if (method === 'GET' && id !== undefined) return attributesOf(id, query)
        return method === 'GET' && path === '/v1/customers' ? find(query.email) : { status: 404, body: {} }
      }
      if (headers.authorization !== BASIC) return unauthorized
      const [, identifier = '', events] = /^\/api\/v1\/customers\/([^/]+)(\/events)?$/.exec(path) ?? []
      if (method === 'PUT' && identifier !== '' && events === undefined) return identify(identifier, json ?? {})
      if (method === 'POST' && events !== undefined) return track(identifier, json ?? {})
      if (method === 'GET' && path === '/api/v1/accounts/region') {
        return { status: 200, body: { url: 'https://track.customer.io', region: 'us', environment_id: 3 } }
      }
      return { status: 404, body: {} }
    },
    had: email => void identify(email, { first_name: 'Old', created_at: 1_577_836_800 }),
    kept: email => people.get(email),
    count: email => (people.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

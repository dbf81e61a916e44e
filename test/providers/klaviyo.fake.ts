import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { klaviyoContract } from './klaviyo.contract.ts'

const KEY = 'klaviyo-key-of-the-test'
const LIST = 'LiSt01'

export const klaviyoSettings = (url: string) => ({
  KLAVIYO_API_KEY: KEY,
  KLAVIYO_LIST_ID: LIST,
  KLAVIYO_BASE_URL: url,
})

interface Profile {
  readonly id: string
  readonly attributes: Record<string, unknown>
  readonly lists: Set<string>
}

export interface KlaviyoFake extends VendorFake {
  readonly lists: Set<string>
  /** The lists of the profile of an address. */
  listsOf(email: string): readonly string[]
}

export const klaviyoError = (status: number, code: string, pointer = '/data', meta: object = {}): Said => ({
  status,
  body: {
    errors: [{ id: 'an-error', status, code, title: 'A title.', detail: 'A detail.', source: { pointer }, meta }],
  },
})

/** As in Klaviyo's reference: JSON:API, a revision with every call, 409 with the id of the profile that is there. */
export function klaviyoFake(): KlaviyoFake {
  const profiles = new Map<string, Profile>()
  const events = new Set<string>()
  const starts = new Map<string, number>()
  const lists = new Set([LIST])
  let ids = 0

  const shown = ({ id, attributes }: Profile) => ({ type: 'profile', id, attributes, links: { self: `/${id}` } })
  const byId = (id: string) => [...profiles.values()].find(each => each.id === id)

  function make(attributes: Record<string, unknown>, created = new Date().toISOString()): Profile {
    const profile = { id: `01PROFILE${++ids}`, attributes: { ...attributes, created }, lists: new Set<string>() }
    profiles.set(String(attributes.email), profile)
    return profile
  }

  function create(attributes: Record<string, unknown>): Said {
    const { email } = attributes
    if (String(email).startsWith('refused')) return klaviyoError(400, 'invalid', '/data/attributes/email')
    const known = profiles.get(String(email))
    if (known === undefined) return { status: 201, body: { data: shown(make(attributes)) } }
    return klaviyoError(409, 'duplicate_profile', '/data/attributes', { duplicate_profile_id: known.id })
  }

  function join(list: string, members: { id: string }[]): Said {
    if (!lists.has(list)) return klaviyoError(404, 'not_found')
    for (const { id } of members) {
      const profile = byId(id)
      if (profile === undefined) return klaviyoError(404, 'not_found')
      profile.lists.add(list)
    }
    return { status: 204 }
  }

  function record({ metric, profile: { data }, unique_id: uniqueId }: Asked['json']): Said {
    const { id, attributes } = data
    const profile = id === undefined ? (profiles.get(attributes.email) ?? make(attributes)) : byId(id)
    if (profile === undefined) return klaviyoError(404, 'not_found')
    const key = JSON.stringify([profile.id, metric.data.attributes.name, uniqueId ?? ++ids])
    const email = String(profile.attributes.email)
    if (!events.has(key)) starts.set(email, (starts.get(email) ?? 0) + 1)
    events.add(key)
    return { status: 202 }
  }

  function answer({ method, path, query, headers, json }: Asked): Said {
    if (headers.authorization !== `Klaviyo-API-Key ${KEY}`) return klaviyoError(401, 'not_authenticated')
    if (headers.revision !== '2026-07-15') return klaviyoError(400, 'invalid', '/headers/revision')
    if (method === 'POST' && !/^application\/(?:vnd\.api\+)?json/.test(headers['content-type'] ?? '')) {
      return klaviyoError(415, 'unsupported_media_type')
    }
    for (const name of Object.keys(query)) {
      if (!['fields[profile]', 'page[size]'].includes(name)) return klaviyoError(400, 'invalid', name)
    }
    const [, , , id = ''] = path.split('/')
    if (path.startsWith('/api/lists/')) return join(id, json.data)
    switch (`${method} ${path}`) {
      case 'POST /api/profiles':
        return create(json.data.attributes)
      case 'POST /api/events':
        return record(json.data.attributes)
      case 'GET /api/profiles':
        return { status: 200, body: { data: [...profiles.values()].slice(0, 1).map(shown), links: {} } }
      default: {
        const profile = byId(id)
        return profile === undefined ? klaviyoError(404, 'not_found') : { status: 200, body: { data: shown(profile) } }
      }
    }
  }

  const listsOf = (email: string) => [...(profiles.get(email)?.lists ?? [])]
  return {
    lists,
    listsOf,
    answer: documented(klaviyoContract, answer),
    had: email => void make({ email, first_name: 'Old' }, '2020-01-01T00:00:00+00:00'),
    kept: email => (profiles.has(email) ? { ...profiles.get(email), lists: listsOf(email) } : undefined),
    count: email => (profiles.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

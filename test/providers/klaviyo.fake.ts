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
  marketing: Marketing
}

interface Marketing {
  readonly consent: 'SUBSCRIBED' | 'UNSUBSCRIBED' | 'NEVER_SUBSCRIBED'
  readonly suppression: readonly { readonly reason: string; readonly timestamp: string }[]
}

export interface KlaviyoFake extends VendorFake {
  readonly lists: Set<string>
  /** Lists with double opt-in, which are joined when it is confirmed. */
  readonly doubleOptIn: Set<string>
  /** Addresses that were asked to confirm. */
  readonly asked: string[]
  /** Jobs that subscribe a profile, in order. */
  readonly jobs: Asked['json'][]
  /** What the profile of an address has consented to, and how it changes there. */
  consentOf(email: string): Marketing['consent'] | undefined
  leaves(email: string, marketing: Marketing): void
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
  const doubleOptIn = new Set<string>()
  const asked: string[] = []
  const jobs: Asked['json'][] = []
  let ids = 0

  function shown({ id, attributes, marketing }: Profile, withSubscriptions = false) {
    const more = { can_receive_email_marketing: marketing.suppression.length === 0, ...marketing }
    const subscriptions = withSubscriptions && { subscriptions: { email: { marketing: more } } }
    return { type: 'profile', id, attributes: { ...attributes, ...subscriptions }, links: { self: `/${id}` } }
  }
  const byId = (id: string) => [...profiles.values()].find(each => each.id === id)

  function make(attributes: Record<string, unknown>, created = new Date().toISOString()): Profile {
    const profile: Profile = {
      id: `01PROFILE${++ids}`,
      attributes: { ...attributes, created },
      lists: new Set<string>(),
      marketing: { consent: 'NEVER_SUBSCRIBED', suppression: [] },
    }
    profiles.set(String(attributes.email), profile)
    return profile
  }

  function create(attributes: Record<string, unknown>, withSubscriptions: boolean): Said {
    const { email } = attributes
    if (String(email).startsWith('refused')) return klaviyoError(400, 'invalid', '/data/attributes/email')
    const known = profiles.get(String(email))
    if (known === undefined) return { status: 201, body: { data: shown(make(attributes), withSubscriptions) } }
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

  /** Lifts what somebody unsubscribed from, as documented. The job is done at once here. */
  function subscribe({ attributes, relationships }: Asked['json']): Said {
    const list: string | undefined = relationships?.list.data.id
    if (list !== undefined && !lists.has(list))
      return klaviyoError(404, 'not_found', '/data/relationships/list/data/id')
    for (const { id, attributes: each } of attributes.profiles.data) {
      const profile = byId(id)
      if (profile?.attributes.email !== each.email) return klaviyoError(400, 'invalid')
      const isOld = attributes.historical_import === true
      if ((each.subscriptions.email.marketing.consented_at !== undefined) !== isOld) return klaviyoError(400, 'invalid')
      jobs.push(each)
      if (list !== undefined && doubleOptIn.has(list) && !isOld) {
        asked.push(each.email)
        continue
      }
      profile!.marketing = { consent: 'SUBSCRIBED', suppression: [] }
      if (list !== undefined) profile!.lists.add(list)
    }
    return { status: 202 }
  }

  /** One identifier. The job is done at once here. */
  function erase({ profile: { data } }: Asked['json']): Said {
    const profile = byId(data.id)
    if (data.id === undefined || Object.keys(data.attributes).length > 0) return klaviyoError(400, 'invalid')
    if (profile !== undefined) profiles.delete(String(profile.attributes.email))
    return { status: 202 }
  }

  function find({ filter, 'page[size]': size = '20' }: Asked['query']): Said {
    const [, email] = /^equals\(email,"([^"\\]*)"\)$/.exec(filter ?? '') ?? []
    if (filter !== undefined && email === undefined) return klaviyoError(400, 'invalid', 'filter')
    const found = [...profiles.values()].filter(({ attributes }) => email === undefined || attributes.email === email)
    return { status: 200, body: { data: found.slice(0, Number(size)).map(each => shown(each)), links: {} } }
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
      const known = ['filter', 'fields[profile]', 'additional-fields[profile]', 'page[size]', 'fields[list]']
      if (!known.includes(name)) return klaviyoError(400, 'invalid', name)
    }
    const [, , , id = ''] = path.split('/')
    if (path.startsWith('/api/lists/') && method === 'POST') return join(id, json.data)
    if (path.startsWith('/api/lists/')) {
      const list = { type: 'list', id, attributes: { name: 'A list' }, links: { self: `/${id}` } }
      return lists.has(id) ? { status: 200, body: { data: list } } : klaviyoError(404, 'not_found')
    }
    const withSubscriptions = query['additional-fields[profile]'] === 'subscriptions'
    switch (`${method} ${path}`) {
      case 'POST /api/profiles':
        return create(json.data.attributes, withSubscriptions)
      case 'POST /api/profile-subscription-bulk-create-jobs':
        return subscribe(json.data)
      case 'POST /api/events':
        return record(json.data.attributes)
      case 'GET /api/profiles':
        return find(query)
      case 'POST /api/data-privacy-deletion-jobs':
        return erase(json.data.attributes)
      default: {
        const profile = byId(id)
        if (profile === undefined) return klaviyoError(404, 'not_found')
        return { status: 200, body: { data: shown(profile, withSubscriptions) } }
      }
    }
  }

  const listsOf = (email: string) => [...(profiles.get(email)?.lists ?? [])]
  return {
    lists,
    doubleOptIn,
    asked,
    jobs,
    listsOf,
    consentOf: email => profiles.get(email)?.marketing.consent,
    leaves(email, marketing) {
      profiles.get(email)!.marketing = marketing
    },
    joined: email => listsOf(email).includes(LIST),
    answer: documented(klaviyoContract, answer),
    had: email => void make({ email, first_name: 'Old' }, '2020-01-01T00:00:00+00:00'),
    kept: email => (profiles.has(email) ? { ...profiles.get(email), lists: listsOf(email) } : undefined),
    count: email => (profiles.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'

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
  /** What the profile of an address has consented to, and how it changes there. */
  consentOf(email: string): Marketing['consent'] | undefined
  leaves(email: string, marketing: Marketing): void
  /** The lists of the profile of an address. */
  listsOf(email: string): readonly string[]
}

/*
 * Facts of https://github.com/klaviyo/openapi (stable, revision 2026-07-15), as far as we send or read it. All errors are one
 * shape there, without `meta`; that of the 409, `duplicate_profile_id`, is from
 * https://github.com/klaviyo/klaviyo-api-node/issues/75.
 */

export const klaviyoError = (status: number, code: string, pointer = '/data', meta: object = {}): Said => ({
  status,
  body: {
    errors: [{ id: 'an-error', status, code, title: 'A title.', detail: 'A detail.', source: { pointer }, meta }],
  },
})
const notFound = klaviyoError(404, 'not_found')

/** As in Klaviyo's reference: JSON:API, a revision with every call, 409 with the id of the profile that is there. */
export function klaviyoFake(): KlaviyoFake {
  const { contacts: profiles, find: findBy, start, facts } = contactBook<Profile>()
  const events = new Set<string>()
  const lists = new Set([LIST])
  const doubleOptIn = new Set<string>()
  const asked: string[] = []
  let ids = 0

  const byId = (id: string | undefined) => findBy(each => each.id === id)

  function shown({ id, attributes, marketing }: Profile, query: Received['query'] = {}) {
    const more = { can_receive_email_marketing: marketing.suppression.length === 0, ...marketing }
    const wanted = query['additional-fields[profile]'] === 'subscriptions'
    const subscriptions = wanted && { subscriptions: { email: { marketing: more } } }
    return { type: 'profile', id, attributes: { ...attributes, ...subscriptions } }
  }

  function make(attributes: Record<string, unknown>, created = new Date().toISOString()): Profile {
    const made: Profile = {
      id: `01PROFILE${++ids}`,
      attributes: { ...attributes, created },
      lists: new Set<string>(),
      marketing: { consent: 'NEVER_SUBSCRIBED', suppression: [] },
    }
    profiles.set(String(attributes.email), made)
    return made
  }

  function create({ json, query }: Received): Said {
    const { attributes } = json.data
    if (attributes.email.startsWith('refused')) return klaviyoError(400, 'invalid', '/data/attributes/email')
    const known = profiles.get(attributes.email)
    if (known === undefined) return { status: 201, body: { data: shown(make(attributes), query) } }
    return klaviyoError(409, 'duplicate_profile', '/data/attributes', { duplicate_profile_id: known.id })
  }

  function join(list: string, members: { id: string }[]): Said {
    if (!lists.has(list) || members.some(({ id }) => byId(id) === undefined)) return notFound
    for (const { id } of members) byId(id)!.lists.add(list)
    return { status: 204 }
  }

  /** Lifts what somebody unsubscribed from, as documented. The job is done at once here. */
  function subscribe({ attributes, relationships }: Received['json']): Said {
    const list: string | undefined = relationships?.list.data.id
    if (list !== undefined && !lists.has(list)) return notFound
    for (const { id, attributes: each } of attributes.profiles.data) {
      const profile = byId(id)
      if (profile?.attributes.email !== each.email) return klaviyoError(400, 'invalid')
      const isOld = attributes.historical_import === true
      if ((each.subscriptions.email.marketing.consented_at !== undefined) !== isOld) return klaviyoError(400, 'invalid')
      if (list !== undefined && doubleOptIn.has(list) && !isOld) asked.push(each.email)
      else {
        profile!.marketing = { consent: 'SUBSCRIBED', suppression: [] }
        if (list !== undefined) profile!.lists.add(list)
      }
    }
    return { status: 202 }
  }

  /** One identifier. The job is done at once here. */
  function erase({ profile: { data } }: Received['json']): Said {
    if (data.id === undefined || Object.keys(data.attributes).length > 0) return klaviyoError(400, 'invalid')
    profiles.delete(String(byId(data.id)?.attributes.email))
    return { status: 202 }
  }

  function find({ filter, 'page[size]': size = '20' }: Received['query']): Said {
    const [, email] = /^equals\(email,"([^"\\]*)"\)$/.exec(filter ?? '') ?? []
    if (filter !== undefined && email === undefined) return klaviyoError(400, 'invalid', 'filter')
    const found = [...profiles.values()].filter(({ attributes }) => email === undefined || attributes.email === email)
    return { status: 200, body: { data: found.slice(0, Number(size)).map(each => shown(each)) } }
  }

  function record({ metric, profile: { data }, unique_id: uniqueId }: Received['json']): Said {
    const { id, attributes } = data
    const profile = id === undefined ? (profiles.get(attributes.email) ?? make(attributes)) : byId(id)
    if (profile === undefined) return notFound
    const key = JSON.stringify([profile.id, metric.data.attributes.name, uniqueId ?? ++ids])
    if (!events.has(key)) start(String(profile.attributes.email))
    events.add(key)
    return { status: 202 }
  }

  function refuses({ method, query, headers }: Received): Said | undefined {
    if (headers.authorization !== `Klaviyo-API-Key ${KEY}`) return klaviyoError(401, 'not_authenticated')
    if (headers.revision !== '2026-07-15') return klaviyoError(400, 'invalid', '/headers/revision')
    const isJson = /^application\/(?:vnd\.api\+)?json/.test(headers['content-type'] ?? '')
    if (method === 'POST' && !isJson) return klaviyoError(415, 'unsupported_media_type')
    const known = ['filter', 'fields[profile]', 'additional-fields[profile]', 'page[size]', 'fields[list]']
    const unknown = Object.keys(query).find(name => !known.includes(name))
    return unknown === undefined ? undefined : klaviyoError(400, 'invalid', unknown)
  }

  const listsOf = (email: string) => [...(profiles.get(email)?.lists ?? [])]
  const one = (status: number, data: object | undefined): Said =>
    data === undefined ? notFound : { status, body: { data } }

  return {
    ...facts,
    lists,
    doubleOptIn,
    asked,
    listsOf,
    answer: vendorApi({
      refuses,
      routes: {
        'POST /api/profiles': create,
        'GET /api/profiles': ({ query }) => find(query),
        'GET /api/profiles/{id}': ({ at, query }) => one(200, byId(at.id) && shown(byId(at.id)!, query)),
        'POST /api/lists/{id}/relationships/profiles': ({ at, json }) => join(at.id!, json.data),
        'GET /api/lists/{id}': ({ at }) => one(200, lists.has(at.id!) ? { type: 'list', id: at.id } : undefined),
        'POST /api/profile-subscription-bulk-create-jobs': ({ json }) => subscribe(json.data),
        'POST /api/data-privacy-deletion-jobs': ({ json }) => erase(json.data.attributes),
        'POST /api/events': ({ json }) => record(json.data.attributes),
      },
    }),
    consentOf: email => profiles.get(email)?.marketing.consent,
    leaves(email, marketing) {
      profiles.get(email)!.marketing = marketing
    },
    joined: email => listsOf(email).includes(LIST),
    had: email => void make({ email, first_name: 'Old' }, '2020-01-01T00:00:00+00:00'),
    kept: email => (profiles.has(email) ? { ...profiles.get(email), lists: listsOf(email) } : undefined),
  }
}

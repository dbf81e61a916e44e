import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { beehiivCalls } from './beehiiv.contract.ts'

const KEY = 'beehiiv-key-of-the-test'
export const PUBLICATION = 'pub_00000000-0000-0000-0000-000000000000'
export const AUTOMATION = 'aut_00000000-0000-0000-0000-000000000000'
export const tags = ['early access', 'friends']

export const beehiivSettings = (url: string) => ({
  BEEHIIV_API_KEY: KEY,
  BEEHIIV_PUBLICATION_ID: PUBLICATION,
  BEEHIIV_AUTOMATION_ID: AUTOMATION,
  BEEHIIV_BASE_URL: url,
})

export interface BeehiivFake extends VendorFake {
  /** As the owner made it. */
  readonly automation: { status: string; trigger_events: string[] }
}

interface Subscription {
  readonly id: string
  readonly email: string
  readonly created: number
  readonly [more: string]: unknown
  tags: readonly string[]
}

const error = (status: number, statusText: string, message: string): Said => ({
  status,
  body: { status, statusText, errors: [{ message, code: statusText.toUpperCase() }] },
})
const notFound = error(404, 'not_found', 'Not found')

const noSource = { utm_source: '', utm_medium: '', utm_campaign: '', utm_term: '', utm_content: '' }

/** As documented at https://developers.beehiiv.com. A creation of an address that is there answers with what is there. */
export function beehiivFake(): BeehiivFake {
  const subscriptions = new Map<string, Subscription>()
  const starts = new Map<string, number>()
  const automation = { status: 'live', trigger_events: ['signup', 'api'] }
  const fields = [{ id: 'cf_1', kind: 'string', display: 'First Name', created: 1_700_000_000 }]

  function keep(email: string, more: object, created: Date): Subscription {
    const subscription: Subscription = {
      id: `sub_${String(subscriptions.size + 1).padStart(8, '0')}`,
      email,
      status: 'validating',
      created: Math.floor(created.getTime() / 1_000),
      subscription_tier: 'free',
      subscription_premium_tier_names: [],
      utm_channel: 'api',
      ...noSource,
      referring_site: '',
      referral_code: 'abc',
      ...more,
      tags: [],
    }
    subscriptions.set(email, subscription)
    return subscription
  }

  function create({ email, ...more }: Asked['json']): Said {
    const known = subscriptions.get(email)
    return known === undefined
      ? { status: 201, body: { data: keep(email, more, new Date()) } }
      : { status: 200, body: { data: known } }
  }

  function addTags(id: string, added: readonly string[]): Said {
    const found = [...subscriptions.values()].find(each => each.id === id)
    if (found === undefined) return notFound
    found.tags = [...new Set([...found.tags, ...added])]
    return { status: 200, body: { data: found } }
  }

  function start({ email, subscription_id: id }: Asked['json']): Said {
    const found = [...subscriptions.values()].find(each => each.id === id || each.email === email)
    if (found === undefined) return notFound
    starts.set(found.email, (starts.get(found.email) ?? 0) + 1)
    const journey = { id: 'aj_1', automation_id: AUTOMATION, subscription_id: found.id, status: 'in_progress' }
    return { status: 200, body: { data: { ...journey, email: found.email, started_at: found.created } } }
  }

  function remove(id: string): Said {
    const found = [...subscriptions.values()].find(each => each.id === id)
    return found !== undefined && subscriptions.delete(found.email) ? { status: 204 } : notFound
  }

  function answer({ method, path, headers, json }: Asked): Said {
    if (headers.authorization !== `Bearer ${KEY}`) return error(401, 'unauthorized', 'Invalid API key')
    const [, , publication, what, id = '', more = ''] = path.split('/')
    if (publication !== PUBLICATION) return notFound
    switch (`${method} ${what ?? ''}`) {
      case 'GET ': {
        const about = { name: 'Example', organization_name: 'Example', referral_program_enabled: false }
        return { status: 200, body: { data: { id: PUBLICATION, ...about, created: 1_600_000_000 } } }
      }
      case 'GET custom_fields':
        return { status: 200, body: { data: fields, limit: 100, page: 1, total_results: 1, total_pages: 1 } }
      case 'GET subscriptions': {
        const found = subscriptions.get(path.slice(path.indexOf('by_email/') + 'by_email/'.length))
        return found === undefined ? notFound : { status: 200, body: { data: found } }
      }
      case 'DELETE subscriptions':
        return remove(id)
      case 'POST subscriptions':
        return id === '' ? create(json) : addTags(id, json.tags)
      case 'GET automations':
        return id === AUTOMATION ? { status: 200, body: { data: { id, name: 'Welcome', ...automation } } } : notFound
      case 'POST automations':
        return id === AUTOMATION && more === 'journeys' ? start(json) : notFound
      default:
        return notFound
    }
  }

  return {
    automation,
    answer: documented(beehiivCalls, answer),
    had: email =>
      void keep(
        email,
        { status: 'inactive', custom_fields: [{ name: 'City', value: 'Rome' }] },
        new Date('2020-01-01'),
      ),
    kept: email => subscriptions.get(email),
    count: email => (subscriptions.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
    joined: email => tags.every(tag => subscriptions.get(email)?.tags.includes(tag)),
  }
}

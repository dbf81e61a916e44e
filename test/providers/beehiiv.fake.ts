import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, taking, text, vendorApi, yesOrNo } from '../harness/vendor-api.ts'

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

/*
 * Facts of the OpenAPI document 1.0.0 of https://developers.beehiiv.com, as it was in 2026-08, as far as we send or read it.
 * Its servers answer a creation with 201, where the document says 200.
 */
const campaign = { utm_source: text, utm_medium: text, utm_campaign: text, utm_term: text, utm_content: text }
const creation = exactly(
  { email: text },
  {
    ...campaign,
    send_welcome_email: yesOrNo,
    referring_site: text,
    // That of another subscriber.
    referral_code: text,
    double_opt_override: { enum: ['on', 'off', 'not_set'] },
    custom_fields: listOf(exactly({}, { name: text, value: { type: ['string', 'number', 'boolean', 'array'] } })),
  },
)

const error = (status: number, statusText: string, message: string): Said => ({
  status,
  body: { status, statusText, errors: [{ message, code: statusText.toUpperCase() }] },
})
const notFound = error(404, 'not_found', 'Not found')

/** As documented at https://developers.beehiiv.com. A creation of an address that is there answers with what is there. */
export function beehiivFake(): BeehiivFake {
  const { contacts, find, start, facts } = contactBook<Subscription>()
  const automation = { status: 'live', trigger_events: ['signup', 'api'] }

  function keep(email: string, more: object, created: Date): Subscription {
    const id = `sub_${String(contacts.size + 1).padStart(8, '0')}`
    const seconds = Math.floor(created.getTime() / 1_000)
    const kept = { id, email, status: 'validating', created: seconds, ...more, tags: [] }
    contacts.set(email, kept)
    return kept
  }

  /** With this status, if there is one. */
  const shown = (found: Subscription | undefined, status = 200): Said =>
    found === undefined ? notFound : { status, body: { data: found } }

  function create({ email, ...more }: Received['json']): Said {
    return contacts.has(email) ? shown(contacts.get(email)) : shown(keep(email, more, new Date()), 201)
  }

  function addTags(id: string, added: readonly string[]): Said {
    const found = find(each => each.id === id)
    if (found !== undefined) found.tags = [...new Set([...found.tags, ...added])]
    return shown(found)
  }

  function begin(journey: string, { email, subscription_id: id }: Received['json']): Said {
    const found = find(each => each.id === id || each.email === email)
    if (found === undefined || journey !== AUTOMATION) return notFound
    start(found.email)
    return { status: 200, body: { data: { id: 'aj_1', automation_id: AUTOMATION, status: 'in_progress' } } }
  }

  function remove(id: string): Said {
    const found = find(each => each.id === id)
    return found !== undefined && contacts.delete(found.email) ? { status: 204 } : notFound
  }

  return {
    ...facts,
    automation,
    answer: vendorApi({
      refuses({ headers, at }) {
        if (headers.authorization !== `Bearer ${KEY}`) return error(401, 'unauthorized', 'Invalid API key')
        return at.publication === PUBLICATION ? undefined : notFound
      },
      routes: {
        'GET /publications/{publication}': ({ at }) => ({ status: 200, body: { data: { id: at.publication } } }),
        'GET /publications/{publication}/subscriptions/by_email/{email}': ({ at }) => shown(contacts.get(at.email!)),
        'POST /publications/{publication}/subscriptions': taking(creation, ({ json }) => create(json)),
        'DELETE /publications/{publication}/subscriptions/{id}': ({ at }) => remove(at.id!),
        'POST /publications/{publication}/subscriptions/{id}/tags': taking(
          exactly({ tags: listOf(text) }),
          ({ at, json }) => addTags(at.id!, json.tags),
        ),
        'GET /publications/{publication}/automations/{id}': ({ at }) =>
          at.id === AUTOMATION ? { status: 200, body: { data: { id: at.id, ...automation } } } : notFound,
        'POST /publications/{publication}/automations/{id}/journeys': taking(
          exactly({}, { email: text, subscription_id: text }),
          ({ at, json }) => begin(at.id!, json),
        ),
        'GET /publications/{publication}/custom_fields': () => ({
          status: 200,
          body: { data: [{ id: 'cf_1', kind: 'string', display: 'First Name' }] },
        }),
      },
    }),
    had(email) {
      const fields = [{ name: 'City', value: 'Rome' }]
      keep(email, { status: 'inactive', custom_fields: fields }, new Date('2020-01-01'))
    },
    joined: email => tags.every(tag => contacts.get(email)?.tags.includes(tag)),
  }
}

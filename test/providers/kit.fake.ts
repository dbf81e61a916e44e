import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import {
  contactBook,
  exactly,
  object,
  type Route,
  type Routed,
  taking,
  text,
  vendorApi,
  whole,
} from '../harness/vendor-api.ts'

const KEY = 'kit_key-of-the-test'
const TAG = 175
const SEQUENCE = 301
const INACTIVE_SEQUENCE = 302
const TAGS = [181, 182]
/** It asks for a confirmation. */
const FORM = 217
/** It does not. */
const FORM_WITHOUT = 218
const FIELDS = ['last_name', 'source']

export const kitSettings = (url: string) => ({ KIT_API_KEY: KEY, KIT_TAG_ID: String(TAG), KIT_BASE_URL: url })
export const kitSequence = { KIT_SEQUENCE_ID: String(SEQUENCE) }
export const kitInactiveSequence = { KIT_SEQUENCE_ID: String(INACTIVE_SEQUENCE) }
export const kitJoined = { KIT_TAG_IDS: TAGS.join(), KIT_FORM_ID: String(FORM) }
export const kitFormWithout = { KIT_FORM_ID: String(FORM_WITHOUT) }
export const kitReferrer = { KIT_REFERRER_URL: 'https://example.com/launch?plan=early' }
export const kitFields = { KIT_LAST_NAME_FIELD: 'last_name', KIT_FIELDS: 'source=landing page' }

interface Subscriber {
  readonly id: number
  first_name: string | null
  readonly email_address: string
  state: string
  readonly created_at: string
  readonly fields: object
}

/* Facts of https://developers.kit.com/api-reference/v4.json (4.0), as far as we send or read it. */
const textOrNull = { type: ['string', 'null'] }
const ofSubscribers = {
  id: whole,
  first_name: textOrNull,
  email_address: text,
  state: { enum: ['active', 'cancelled', 'bounced', 'complained', 'inactive'] },
  created_at: text,
  fields: object(),
}
const creation = exactly(
  { email_address: text },
  {
    first_name: textOrNull,
    state: ofSubscribers.state,
    // By the key of each. The document says of an unknown one that it is refused, and that it is ignored.
    fields: { type: 'object', additionalProperties: text },
  },
)
/** The page that a subscriber comes from, whose query has the campaign. */
const referrer = { referrer: textOrNull }

const errors = (status: number, ...texts: readonly string[]): Said => ({ status, body: { errors: texts } })
const notFound = errors(404, 'Not Found')
const paged = (what: string, items: readonly object[]): Said => ({
  status: 200,
  body: { [what]: items, pagination: {} },
})

/** The vendor's times have no fraction of a second. */
const timeOf = (date: Date) => `${date.toISOString().slice(0, 19)}Z`

/**
 * As documented at https://developers.kit.com/api-reference: the creation is an upsert, and rewrites the first name. A form
 * makes active who is inactive, unless it asks for a confirmation first. Of an unknown custom field the document says both
 * that it is refused and that it is ignored: here it is refused.
 */
export function kitFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<Subscriber>()
  /** Who has which tag, and is in which sequence and form, as `tags/175 1`. */
  const given = new Set<string>()
  let ids = 0

  const placesOf = (subscriber: Subscriber | undefined) =>
    [...given].filter(each => each.endsWith(` ${subscriber?.id}`)).map(each => each.split(' ')[0])

  function list({ email_address: addresses = '', status = 'active' }: Received['query']): Said {
    const wanted = addresses.split(',').map(each => contacts.get(each))
    const found = wanted.filter(each => each !== undefined)
    return paged(
      'subscribers',
      found.filter(each => status === 'all' || status === each.state),
    )
  }

  function upsert({ email_address: email, first_name = null, state = 'active', fields = {} }: Received['json']): Said {
    if (!/^[^@\s,]+@[^@\s,]+$/.test(email) || email.startsWith('refused'))
      return errors(422, 'Email address is invalid')
    const unknown = Object.keys(fields).find(key => !FIELDS.includes(key))
    if (unknown !== undefined) return errors(422, `Custom field ${unknown} does not exist`)
    const known = contacts.get(email)
    if (known !== undefined) {
      known.first_name = first_name ?? known.first_name
      return { status: 200, body: { subscriber: known } }
    }
    const subscriber = { id: ++ids, first_name, email_address: email, state, created_at: timeOf(new Date()), fields }
    contacts.set(email, subscriber)
    return { status: 201, body: { subscriber } }
  }

  /** A subscriber, who is named by an id in the path or by an address in the body, is added to a tag, sequence or form. */
  function give(kind: string, { at, json }: Routed): Said {
    const id = Number(at.place)
    if (id === INACTIVE_SEQUENCE) return errors(422, 'Sequence is inactive')
    const subscriber = find(each =>
      at.id === undefined ? each.email_address === json.email_address : String(each.id) === at.id,
    )
    if (subscriber === undefined) return notFound
    const key = `${kind}/${id} ${subscriber.id}`
    const isNew = !given.has(key)
    given.add(key)
    if (id === FORM_WITHOUT && subscriber.state === 'inactive') subscriber.state = 'active'
    if (isNew && [TAG, SEQUENCE].includes(id)) start(subscriber.email_address)
    const now = timeOf(new Date())
    const more = { tagged_at: now, added_at: now, referrer: '', referrer_utm_parameters: {} }
    return { status: isNew ? 201 : 200, body: { subscriber: { ...subscriber, ...more } } }
  }

  /** The calls of a kind of place. */
  function place(kind: string, known: readonly number[], more: Record<string, object> = {}) {
    const routed = (does: Route) => (asked: Routed) => (known.includes(Number(asked.at.place)) ? does(asked) : notFound)
    const giving = routed(asked => give(kind, asked))
    const path = `/v4/${kind}/{place}/subscribers`
    return {
      [`GET ${path}`]: routed(() => paged('subscribers', [])),
      [`POST ${path}`]: taking(exactly({ email_address: text }, more), giving),
      [`POST ${path}/{id}`]: taking(exactly({}, more), giving),
    }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers['x-kit-api-key'] === KEY ? undefined : errors(401, 'The access token is invalid'),
      routes: {
        'GET /v4/account': () => ({ status: 200, body: { user: {}, account: { id: 29 } } }),
        'GET /v4/subscribers': ({ query }) => list(query),
        'POST /v4/subscribers': taking(creation, ({ json }) => upsert(json)),
        'GET /v4/custom_fields': () =>
          paged(
            'custom_fields',
            FIELDS.map((key, id) => ({ id, key })),
          ),
        ...place('tags', [TAG, ...TAGS]),
        ...place('sequences', [SEQUENCE, INACTIVE_SEQUENCE]),
        ...place('forms', [FORM, FORM_WITHOUT], referrer),
      },
    }),
    had(email) {
      const old = { first_name: 'Old', email_address: email, state: 'cancelled', fields: { category: 'One' } }
      contacts.set(email, { id: ++ids, ...old, created_at: '2023-02-17T11:43:55Z' })
    },
    kept(email) {
      const subscriber = contacts.get(email)
      return subscriber && { ...subscriber, places: placesOf(subscriber) }
    },
    joined(email) {
      const places = placesOf(contacts.get(email))
      return [...TAGS.map(tag => `tags/${tag}`), `forms/${FORM}`].every(each => places.includes(each))
    },
  }
}

import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'kit_key-of-the-test'
const TAG = 175
const SEQUENCE = 301
const INACTIVE_SEQUENCE = 302
const TAGS = [181, 182]
/** It asks for a confirmation. */
const FORM = 217
/** It does not. */
const FORM_WITHOUT = 218

const places: Readonly<Record<string, readonly number[]>> = {
  tags: [TAG, ...TAGS],
  sequences: [SEQUENCE, INACTIVE_SEQUENCE],
  forms: [FORM, FORM_WITHOUT],
}
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

const MEMBERS = ['email_address', 'first_name', 'state', 'fields']

const errors = (status: number, ...texts: readonly string[]): Said => ({ status, body: { errors: texts } })
const notFound = errors(404, 'Not Found')

/** The vendor's times have no fraction of a second. */
const timeOf = (date: Date) => `${date.toISOString().slice(0, 19)}Z`

/**
 * As documented at https://developers.kit.com/api-reference: the creation is an upsert, and rewrites the first name. A form
 * makes active who is inactive, unless it asks for a confirmation first. Of an unknown custom field the document says both
 * that it is refused and that it is ignored: here it is refused.
 */
export function kitFake(): VendorFake {
  const subscribers = new Map<string, Subscriber>()
  const starts = new Map<string, number>()
  /** Who has which tag, and is in which sequence and form, as `tags/175 1`. */
  const given = new Set<string>()
  let ids = 0

  const placesOf = ({ id }: Subscriber) => [...given].filter(each => each.endsWith(` ${id}`))

  function list({ email_address: addresses = '', status = 'active' }: Readonly<Record<string, string>>): Said {
    const wanted = addresses.split(',')
    const found = [...subscribers.values()].filter(
      each => wanted.includes(each.email_address) && (status === 'all' || status === each.state),
    )
    return page('subscribers', found)
  }

  function page(what: string, items: readonly object[]): Said {
    const pagination = {
      has_previous_page: false,
      has_next_page: false,
      start_cursor: '',
      end_cursor: '',
      per_page: 500,
    }
    return { status: 200, body: { [what]: items, pagination } }
  }

  function upsert(body: Record<string, unknown>): Said {
    const { email_address: email, first_name: name, state = 'active', fields = {} } = body
    if (Object.keys(body).some(each => !MEMBERS.includes(each))) return errors(422, 'Unknown parameter')
    if (typeof email !== 'string' || !/^[^@\s,]+@[^@\s,]+$/.test(email) || email.startsWith('refused')) {
      return errors(422, 'Email address is invalid')
    }
    const unknown = Object.keys(fields as object).filter(key => !FIELDS.includes(key))
    if (unknown.length > 0) return errors(422, `Custom field ${unknown[0]} does not exist`)
    const known = subscribers.get(email)
    if (known !== undefined) {
      if (typeof name === 'string') known.first_name = name
      return { status: 200, body: { subscriber: known } }
    }
    const subscriber: Subscriber = {
      id: ++ids,
      first_name: (name as string) ?? null,
      email_address: email,
      state: String(state),
      created_at: timeOf(new Date()),
      fields: fields as object,
    }
    subscribers.set(email, subscriber)
    return { status: 201, body: { subscriber } }
  }

  /** A subscriber, who is named by an id in the path or by an address in the body, is added to a tag, sequence or form. */
  function give(kind: string, id: number, named: string | undefined, body: Record<string, unknown>): Said {
    if (id === INACTIVE_SEQUENCE) return errors(422, 'Sequence is inactive')
    const subscriber =
      named === undefined
        ? subscribers.get(String(body.email_address))
        : [...subscribers.values()].find(each => String(each.id) === named)
    if (subscriber === undefined) return notFound
    const key = `${kind}/${id} ${subscriber.id}`
    const isNew = !given.has(key)
    given.add(key)
    const email = subscriber.email_address
    if (id === FORM_WITHOUT && subscriber.state === 'inactive') subscriber.state = 'active'
    if (isNew && [TAG, SEQUENCE].includes(id)) starts.set(email, (starts.get(email) ?? 0) + 1)
    const at = { [kind === 'tags' ? 'tagged_at' : 'added_at']: timeOf(new Date()) }
    const from = kind === 'forms' ? { referrer: '', referrer_utm_parameters: {} } : {}
    return { status: isNew ? 201 : 200, body: { subscriber: { ...subscriber, ...at, ...from } } }
  }

  return {
    answer({ method, path, query, headers, json }: Asked) {
      if (headers['x-kit-api-key'] !== KEY) return errors(401, 'The access token is invalid')
      if (method === 'GET' && path === '/v4/account') {
        const account = { id: 29, name: 'Example', plan_type: 'creator', primary_email_address: 'owner@example.com' }
        return { status: 200, body: { user: { id: 29, email: 'owner@example.com' }, account } }
      }
      if (method === 'GET' && path === '/v4/subscribers') return list(query)
      if (method === 'POST' && path === '/v4/subscribers') return upsert(json ?? {})
      if (method === 'GET' && path === '/v4/custom_fields') {
        const fields = FIELDS.map((key, i) => ({ id: i + 1, name: `ck_field_${i + 1}_${key}`, key, label: key }))
        return page('custom_fields', fields)
      }
      const [, kind = '', id, named] = /^\/v4\/(tags|sequences|forms)\/(\d+)\/subscribers(?:\/(\w+))?$/.exec(path) ?? []
      if (!places[kind]?.includes(Number(id))) return notFound
      if (method === 'GET' && named === undefined) return page('subscribers', [])
      return method === 'POST' ? give(kind, Number(id), named, json ?? {}) : notFound
    },
    had: email =>
      void subscribers.set(email, {
        id: ++ids,
        first_name: 'Old',
        email_address: email,
        state: 'cancelled',
        created_at: '2023-02-17T11:43:55Z',
        fields: { category: 'One' },
      }),
    kept(email) {
      const subscriber = subscribers.get(email)
      return subscriber && { ...subscriber, places: placesOf(subscriber) }
    },
    joined(email) {
      const places = placesOf(subscribers.get(email)!).map(each => each.split(' ')[0])
      return [...TAGS.map(tag => `tags/${tag}`), `forms/${FORM}`].every(each => places.includes(each))
    },
    count: email => (subscribers.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

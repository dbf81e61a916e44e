import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'kit_key-of-the-test'
const TAG = 175
const SEQUENCE = 301
const INACTIVE_SEQUENCE = 302

export const kitSettings = (url: string) => ({ KIT_API_KEY: KEY, KIT_TAG_ID: String(TAG), KIT_BASE_URL: url })
export const kitSequence = { KIT_SEQUENCE_ID: String(SEQUENCE) }
export const kitInactiveSequence = { KIT_SEQUENCE_ID: String(INACTIVE_SEQUENCE) }

interface Subscriber {
  readonly id: number
  first_name: string | null
  readonly email_address: string
  readonly state: string
  readonly created_at: string
  readonly fields: object
}

const MEMBERS = ['email_address', 'first_name', 'state', 'fields']

const errors = (status: number, ...texts: readonly string[]): Said => ({ status, body: { errors: texts } })
const notFound = errors(404, 'Not Found')

/** The vendor's times have no fraction of a second. */
const timeOf = (date: Date) => `${date.toISOString().slice(0, 19)}Z`

/** As documented at https://developers.kit.com/api-reference: the creation is an upsert, and rewrites the first name. */
export function kitFake(): VendorFake {
  const subscribers = new Map<string, Subscriber>()
  const starts = new Map<string, number>()
  /** Who has which tag and is in which sequence, as `tags/175 1`. */
  const given = new Set<string>()
  let ids = 0

  function list({ email_address: addresses = '', status = 'active' }: Readonly<Record<string, string>>): Said {
    const wanted = addresses.split(',')
    const found = [...subscribers.values()].filter(
      each => wanted.includes(each.email_address) && (status === 'all' || status === each.state),
    )
    const pagination = {
      has_previous_page: false,
      has_next_page: false,
      start_cursor: '',
      end_cursor: '',
      per_page: 500,
    }
    return { status: 200, body: { subscribers: found, pagination } }
  }

  function upsert(body: Record<string, unknown>): Said {
    const { email_address: email, first_name: name } = body
    if (Object.keys(body).some(each => !MEMBERS.includes(each))) return errors(422, 'Unknown parameter')
    if (typeof email !== 'string' || !/^[^@\s,]+@[^@\s,]+$/.test(email) || email.startsWith('refused')) {
      return errors(422, 'Email address is invalid')
    }
    const known = subscribers.get(email)
    if (known !== undefined) {
      if (typeof name === 'string') known.first_name = name
      return { status: 200, body: { subscriber: known } }
    }
    const subscriber: Subscriber = {
      id: ++ids,
      first_name: (name as string) ?? null,
      email_address: email,
      state: 'active',
      created_at: timeOf(new Date()),
      fields: {},
    }
    subscribers.set(email, subscriber)
    return { status: 201, body: { subscriber } }
  }

  /** A tag or a sequence is given to a subscriber, who is named by an id in the path or by an address in the body. */
  function give(kind: string, id: number, named: string | undefined, body: Record<string, unknown>): Said {
    if (!(kind === 'tags' ? [TAG] : [SEQUENCE, INACTIVE_SEQUENCE]).includes(id)) return notFound
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
    if (isNew) starts.set(email, (starts.get(email) ?? 0) + 1)
    const at = { [kind === 'tags' ? 'tagged_at' : 'added_at']: timeOf(new Date()) }
    return { status: isNew ? 201 : 200, body: { subscriber: { ...subscriber, ...at } } }
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
      const [, kind, id, named] = /^\/v4\/(tags|sequences)\/(\d+)\/subscribers(?:\/(\w+))?$/.exec(path) ?? []
      if (method === 'POST' && kind !== undefined) return give(kind, Number(id), named, json ?? {})
      return notFound
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
    kept: email => subscribers.get(email),
    count: email => (subscribers.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

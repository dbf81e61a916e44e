import { randomUUID } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 're_key-of-the-test'
const SENDING_KEY = 're_may-only-send'
const SEGMENT = '78261eea-8f8b-4381-83c6-79fa7120f1cf'
export const OTHER_SEGMENT = '2c3b1a2e-50f1-4c3c-8f0f-0d3c6f5c1a11'
export const TOPIC = 'b6d24b8e-af0b-4c3c-be0c-359bbd97381e'
const SEGMENTS = [SEGMENT, OTHER_SEGMENT]
/** What the owner has registered, with the type. */
const PROPERTIES = new Map([
  ['plan', 'string'],
  ['email_source', 'string'],
  ['seats', 'number'],
])

export const resendSettings = (url: string) => ({
  RESEND_API_KEY: KEY,
  RESEND_SEGMENT_IDS: SEGMENT,
  RESEND_BASE_URL: url,
})
/** Everything that a contact can get. */
export const resendMore = {
  RESEND_SEGMENT_IDS: SEGMENTS.join(),
  RESEND_TOPIC_IDS: TOPIC,
  RESEND_PROPERTIES: 'plan=early, email_source=landing page',
}
export const resendSendingKey = { RESEND_API_KEY: SENDING_KEY }

interface Kept {
  readonly id: string
  readonly email: string
  readonly first_name: string | null
  readonly last_name: string | null
  readonly created_at: string
  readonly unsubscribed: boolean
  readonly properties: object
  segments: readonly string[]
  readonly topics: readonly object[]
}

const MEMBERS = ['email', 'first_name', 'last_name', 'unsubscribed', 'properties', 'segments', 'topics']

/** https://resend.com/docs/api-reference/errors */
const error = (statusCode: number, name: string, message: string): Said => ({
  status: statusCode,
  body: { statusCode, name, message },
})
const notFound = (message: string) => error(404, 'not_found', message)

/** The vendor writes a time so: with a blank, and a zone of two digits. */
const timeOf = (date: Date) => date.toISOString().replace('T', ' ').replace('Z', '+00')

/** As documented at https://resend.com/docs/api-reference; a second creation answers with the contact that is there. */
export function resendFake(): VendorFake {
  const contacts = new Map<string, Kept>()
  const starts = new Map<string, number>()

  const find = (idOrEmail: string) =>
    contacts.get(idOrEmail) ?? [...contacts.values()].find(({ id }) => id === idOrEmail)

  function create(body: Record<string, unknown>): Said {
    const unknown = Object.keys(body).filter(name => !MEMBERS.includes(name))
    if (unknown.length > 0) return error(422, 'validation_error', `Unrecognized key: ${unknown[0]}`)
    const { email, first_name = null, last_name = null, segments = [], topics = [], properties = {} } = body
    if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return error(422, 'validation_error', 'Invalid `email` field. The email address needs to be valid.')
    }
    const ids = (segments as readonly { id?: string }[]).map(({ id }) => id)
    if (ids.some(id => !SEGMENTS.includes(id!))) return notFound('Segment not found')
    if ((topics as { id?: string }[]).some(({ id }) => id !== TOPIC)) return notFound('Topic not found')
    const unknownProperty = Object.keys(properties as object).find(name => !PROPERTIES.has(name))
    if (unknownProperty !== undefined) {
      return error(422, 'validation_error', `The following properties do not exist: ${unknownProperty}`)
    }
    const kept = contacts.get(email) ?? {
      id: randomUUID(),
      email,
      first_name: first_name as string | null,
      last_name: last_name as string | null,
      created_at: timeOf(new Date()),
      unsubscribed: false,
      // A property is answered with its type.
      properties: Object.fromEntries(
        Object.entries(properties as object).map(([name, value]) => [name, { type: PROPERTIES.get(name), value }]),
      ),
      segments: ids as string[],
      topics: topics as object[],
    }
    contacts.set(email, kept)
    return { status: 201, body: { object: 'contact', id: kept.id } }
  }

  /** `/contacts/{id}/segments` and below. */
  function segmentsOf(method: string, idOrEmail: string, segment: string | undefined): Said {
    const kept = find(idOrEmail)
    if (kept === undefined) return notFound('Contact not found')
    if (method === 'GET' && segment === undefined) {
      const data = kept.segments.map(id => ({ id, name: 'Waitlist', created_at: timeOf(new Date(0)) }))
      return { status: 200, body: { object: 'list', has_more: false, data } }
    }
    if (method !== 'POST' || !SEGMENTS.includes(segment!)) return notFound('Segment not found')
    // Not documented, so no client may depend on another answer.
    if (kept.segments.includes(segment!)) return error(409, 'conflict', 'Contact is already in the segment')
    kept.segments = [...kept.segments, segment!]
    return { status: 200, body: { object: 'contact_segment', contact_id: kept.id, segment_id: segment } }
  }

  function send({ event, contact_id, email, ...more }: Record<string, string>): Said {
    if (
      !event ||
      (contact_id === undefined) === (email === undefined) ||
      Object.keys(more).some(m => m !== 'payload')
    ) {
      return error(422, 'validation_error', 'Exactly one of `contact_id` and `email` is required.')
    }
    const address = email ?? find(contact_id!)?.email
    if (address === undefined) return notFound('Contact not found')
    starts.set(address, (starts.get(address) ?? 0) + 1)
    return { status: 202, body: { object: 'event', event } }
  }

  function refused({ headers }: Asked): Said | undefined {
    const { authorization } = headers
    if (authorization === undefined) return error(401, 'missing_api_key', 'Missing API key in the authorization header')
    if (authorization === `Bearer ${SENDING_KEY}`)
      return error(401, 'restricted_api_key', 'This API key is restricted to only send emails')
    return authorization === `Bearer ${KEY}` ? undefined : error(403, 'invalid_api_key', 'API key is invalid')
  }

  return {
    answer(asked) {
      const no = refused(asked)
      if (no !== undefined) return no
      const { method, path, query, json } = asked
      const [, ofContact, segment] = /^\/contacts\/(.+)\/segments(?:\/([^/]+))?$/.exec(path) ?? []
      if (ofContact !== undefined) return segmentsOf(method, ofContact, segment)
      const [, collection, name] = /^\/([\w-]+)(?:\/(.+))?$/.exec(path) ?? []
      switch (`${method} /${collection}${name === undefined ? '' : '/…'}`) {
        case 'GET /contacts': {
          const data = [...contacts.values()]
            .slice(0, Number(query.limit ?? 20))
            .map(({ segments, topics, ...more }) => more)
          return { status: 200, body: { object: 'list', has_more: false, data } }
        }
        case 'GET /contacts/…': {
          const kept = find(name!)
          if (kept === undefined) return notFound('Contact not found')
          const { segments, topics, ...more } = kept
          return { status: 200, body: { object: 'contact', ...more } }
        }
        case 'DELETE /contacts/…': {
          const kept = find(name!)
          if (kept === undefined) return notFound('Contact not found')
          contacts.delete(kept.email)
          return { status: 200, body: { object: 'contact', contact: kept.id, deleted: true } }
        }
        case 'GET /segments/…':
          if (!SEGMENTS.includes(name!)) return notFound('Segment not found')
          return {
            status: 200,
            body: { object: 'segment', id: name, name: 'Waitlist', created_at: timeOf(new Date(0)) },
          }
        case 'GET /topics/…':
          if (name !== TOPIC) return notFound('Topic not found')
          return {
            status: 200,
            body: {
              object: 'topic',
              id: TOPIC,
              name: 'News',
              default_subscription: 'opt_out',
              visibility: 'public',
              created_at: timeOf(new Date(0)),
            },
          }
        case 'GET /contact-properties': {
          const data = [...PROPERTIES].map(([key, type]) => ({
            id: randomUUID(),
            key,
            type,
            created_at: timeOf(new Date(0)),
          }))
          return { status: 200, body: { object: 'list', has_more: false, data } }
        }
        case 'POST /contacts':
          return create(json ?? {})
        case 'POST /events/…':
          return send(json ?? {})
        default:
          return notFound('The requested endpoint does not exist')
      }
    },
    had: email =>
      void contacts.set(email, {
        id: randomUUID(),
        email,
        first_name: 'Old',
        last_name: null,
        created_at: '2023-10-06 23:47:56.678+00',
        unsubscribed: true,
        properties: { plan: 'free' },
        segments: [OTHER_SEGMENT],
        topics: [{ id: TOPIC, subscription: 'opt_out' }],
      }),
    joined: email => SEGMENTS.every(id => contacts.get(email)?.segments.includes(id)),
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}

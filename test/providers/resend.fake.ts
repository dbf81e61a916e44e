import { randomUUID } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { contactBook, exactly, listOf, object, text, vendorApi, whole, yesOrNo } from '../harness/vendor-api.ts'

const KEY = 're_key-of-the-test'
const SENDING_KEY = 're_may-only-send'
export const SEGMENT = '78261eea-8f8b-4381-83c6-79fa7120f1cf'
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
  readonly properties: object
  segments: readonly string[]
  readonly [more: string]: unknown
}

/*
 * Facts of https://github.com/resend/resend-openapi (MIT), 1.5.0, for the calls that we make. It says that segments are texts,
 * where the vendor's own clients send objects, as we do; and that a removal answers with `id`, where they expect `contact`.
 */
const id = { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }
/** Such as `2023-10-06 23:47:56.678+00`. */
const time = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d+\\+00$' }
const textOrNull = { type: ['string', 'null'] }
const answer = (kind: string, members: Readonly<Record<string, object>>) =>
  exactly({ object: { const: kind } }, members)
const list = (item: object) => answer('list', { has_more: yesOrNo, data: listOf(item) })
const contact = {
  id,
  email: text,
  first_name: textOrNull,
  last_name: textOrNull,
  created_at: time,
  unsubscribed: yesOrNo,
}
const creation = exactly(
  { email: text },
  {
    first_name: text,
    last_name: text,
    properties: { type: 'object', additionalProperties: text },
    segments: listOf(object({ id })),
    topics: listOf(exactly({ id, subscription: { enum: ['opt_in', 'opt_out'] } })),
  },
)
const event = {
  ...exactly({ event: text }, { contact_id: id, email: text, payload: object() }),
  oneOf: [{ required: ['contact_id'] }, { required: ['email'] }],
}
/** https://resend.com/docs/api-reference/errors: the document has no error answers. */
const errorBody = object({ statusCode: whole, name: text, message: text })

const error = (statusCode: number, name: string, message: string): Said => ({
  status: statusCode,
  body: { statusCode, name, message },
})
const notFound = (what: string) => error(404, 'not_found', `${what} not found`)

/** The vendor writes a time so: with a blank, and a zone of two digits. */
const timeOf = (date: Date) => date.toISOString().replace('T', ' ').replace('Z', '+00')
const START = timeOf(new Date(0))

/** As documented at https://resend.com/docs/api-reference; a second creation answers with the contact that is there. */
export function resendFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<Kept>()
  const at = (idOrEmail: string) => contacts.get(idOrEmail) ?? find(each => each.id === idOrEmail)
  const shown = ({ segments, topics, ...more }: Kept) => more

  /** What is done with the contact of this id or address, if there is one. */
  const of = (idOrEmail: string, what: (kept: Kept) => Said): Said => {
    const kept = at(idOrEmail)
    return kept === undefined ? notFound('Contact') : what(kept)
  }
  const named = (kind: string, known: readonly string[], wanted: string, more: object = {}): Said =>
    known.includes(wanted)
      ? { status: 200, body: { object: kind, id: wanted, name: 'Waitlist', created_at: START, ...more } }
      : notFound(kind)

  function create({ email, first_name, last_name, segments = [], topics = [], properties = {} }: Asked['json']): Said {
    if (email.startsWith('refused')) {
      return error(422, 'validation_error', 'Invalid `email` field. The email address needs to be valid.')
    }
    const ids = segments.map((each: { id: string }) => each.id)
    if (ids.some((each: string) => !SEGMENTS.includes(each))) return notFound('Segment')
    if (topics.some((each: { id: string }) => each.id !== TOPIC)) return notFound('Topic')
    const unknown = Object.keys(properties).find(name => !PROPERTIES.has(name))
    if (unknown !== undefined) {
      return error(422, 'validation_error', `The following properties do not exist: ${unknown}`)
    }
    const kept = contacts.get(email) ?? {
      id: randomUUID(),
      email,
      first_name: first_name ?? null,
      last_name: last_name ?? null,
      created_at: timeOf(new Date()),
      unsubscribed: false,
      properties,
      segments: ids,
      topics,
    }
    contacts.set(email, kept)
    return { status: 201, body: { object: 'contact', id: kept.id } }
  }

  function join(kept: Kept, segment: string): Said {
    if (!SEGMENTS.includes(segment)) return notFound('Segment')
    // Not documented, so no client may depend on another answer.
    if (kept.segments.includes(segment)) return error(409, 'conflict', 'Contact is already in the segment')
    kept.segments = [...kept.segments, segment]
    return { status: 200, body: { object: 'contact_segment', contact_id: kept.id, segment_id: segment } }
  }

  function send({ event, contact_id, email }: Asked['json']): Said {
    const address = email ?? at(contact_id)?.email
    if (address === undefined) return notFound('Contact')
    start(address)
    return { status: 202, body: { object: 'event', event } }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses({ headers: { authorization } }) {
        if (authorization === `Bearer ${SENDING_KEY}`) {
          return error(401, 'restricted_api_key', 'This API key is restricted to only send emails')
        }
        return authorization === `Bearer ${KEY}` ? undefined : error(403, 'invalid_api_key', 'API key is invalid')
      },
      always: { 401: errorBody, 403: errorBody, 404: errorBody, 422: errorBody },
      routes: {
        'GET /contacts': {
          answers: { 200: list(object(contact)) },
          does: ({ query }) => {
            const data = [...contacts.values()].slice(0, Number(query.limit)).map(shown)
            return { status: 200, body: { object: 'list', has_more: false, data } }
          },
        },
        'GET /contacts/{contact}': {
          answers: { 200: answer('contact', { ...contact, properties: object() }) },
          does: asked => of(asked.at.contact!, kept => ({ status: 200, body: { object: 'contact', ...shown(kept) } })),
        },
        'POST /contacts': {
          takes: creation,
          answers: { 201: answer('contact', { id }) },
          does: ({ json }) => create(json),
        },
        'DELETE /contacts/{contact}': {
          answers: { 200: answer('contact', { contact: id, deleted: yesOrNo }) },
          does: asked =>
            of(asked.at.contact!, kept => {
              contacts.delete(kept.email)
              return { status: 200, body: { object: 'contact', contact: kept.id, deleted: true } }
            }),
        },
        'GET /contacts/{contact}/segments': {
          answers: { 200: list(exactly({ id, name: text, created_at: time })) },
          does: asked =>
            of(asked.at.contact!, ({ segments }) => {
              const data = segments.map(each => ({ id: each, name: 'Waitlist', created_at: START }))
              return { status: 200, body: { object: 'list', has_more: false, data } }
            }),
        },
        'POST /contacts/{contact}/segments/{segment}': {
          answers: { 200: answer('contact_segment', { contact_id: id, segment_id: id }), 409: errorBody },
          does: asked => of(asked.at.contact!, kept => join(kept, asked.at.segment!)),
        },
        'GET /segments/{id}': {
          answers: { 200: answer('segment', { id, name: text, created_at: time }) },
          does: asked => named('segment', SEGMENTS, asked.at.id!),
        },
        'GET /topics/{id}': {
          answers: {
            200: answer('topic', { id, name: text, created_at: time, default_subscription: text, visibility: text }),
          },
          does: asked =>
            named('topic', [TOPIC], asked.at.id!, { default_subscription: 'opt_out', visibility: 'public' }),
        },
        'GET /contact-properties': {
          answers: { 200: list(exactly({ id, key: text, type: { enum: ['string', 'number'] }, created_at: time })) },
          does: () => {
            const data = [...PROPERTIES].map(([key, type]) => ({ id: randomUUID(), key, type, created_at: START }))
            return { status: 200, body: { object: 'list', has_more: false, data } }
          },
        },
        'POST /events/send': {
          takes: event,
          answers: { 202: answer('event', { event: text }) },
          does: ({ json }) => send(json),
        },
      },
    }),
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
    joined: email => SEGMENTS.every(each => contacts.get(email)?.segments.includes(each)),
  }
}

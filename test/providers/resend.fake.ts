import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, type Routed, vendorApi } from '../harness/vendor-api.ts'

const KEY = 're_key-of-the-test'
const SENDING_KEY = 're_may-only-send'
const SEGMENT = '78261eea-8f8b-4381-83c6-79fa7120f1cf'
export const OTHER_SEGMENT = '2c3b1a2e-50f1-4c3c-8f0f-0d3c6f5c1a11'
export const TOPIC = 'b6d24b8e-af0b-4c3c-be0c-359bbd97381e'
const SEGMENTS = [SEGMENT, OTHER_SEGMENT]
/** What the owner has registered, with the type. */
const PROPERTIES: Readonly<Record<string, string>> = { plan: 'string', email_source: 'string', seats: 'number' }

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

/*
 * Facts of https://github.com/resend/resend-openapi (MIT), 1.5.0, as far as we send or read it. It says that segments are
 * texts, where the vendor's own clients send objects, as we do; and it has no error answers, which are those of
 * https://resend.com/docs/api-reference/errors.
 */

const error = (statusCode: number, name: string, message: string): Said => ({
  status: statusCode,
  body: { statusCode, name, message },
})
const notFound = error(404, 'not_found', 'It was not found')
const ok = (object: string, more: object, status = 200): Said => ({ status, body: { object, ...more } })

/** The vendor writes a time so: with a blank, and a zone of two digits. */
const timeOf = (date: Date) => date.toISOString().replace('T', ' ').replace('Z', '+00')

/** As documented at https://resend.com/docs/api-reference; a second creation answers with the contact that is there. */
export function resendFake(): VendorFake {
  const { contacts, find: findBy, start, facts } = contactBook<Kept>()

  let ids = 0

  const newId = () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`
  const find = (idOrEmail = '') => contacts.get(idOrEmail) ?? findBy(({ id }) => id === idOrEmail)

  function create({ email, first_name = null, last_name = null, ...more }: Received['json']): Said {
    const { segments = [], topics = [], properties = {} } = more
    if (!/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return error(422, 'validation_error', 'Invalid `email` field. The email address needs to be valid.')
    }
    const ids: string[] = segments.map(({ id }: { id: string }) => id)
    if (ids.some(id => !SEGMENTS.includes(id))) return notFound
    if (topics.some(({ id }: { id: string }) => id !== TOPIC)) return notFound
    const unknown = Object.keys(properties).find(name => !Object.hasOwn(PROPERTIES, name))
    if (unknown !== undefined) {
      return error(422, 'validation_error', `The following properties do not exist: ${unknown}`)
    }
    const typed = Object.entries(properties).map(([name, value]) => [name, { type: PROPERTIES[name], value }])
    const kept = contacts.get(email) ?? {
      id: newId(),
      email,
      first_name,
      last_name,
      created_at: timeOf(new Date()),
      unsubscribed: false,
      properties: Object.fromEntries(typed),
      segments: ids,
      topics,
    }
    contacts.set(email, kept)
    return ok('contact', { id: kept.id }, 201)
  }

  /** What is done with the contact that the path names. */
  const of = (does: (kept: Kept, asked: Routed) => Said) => (asked: Routed) => {
    const kept = find(asked.at.contact)
    return kept === undefined ? notFound : does(kept, asked)
  }

  function add(kept: Kept, { at: { segment = '' } }: Routed): Said {
    if (!SEGMENTS.includes(segment)) return notFound
    // Not documented, so no client may depend on another answer.
    if (kept.segments.includes(segment)) return error(409, 'conflict', 'Contact is already in the segment')
    kept.segments = [...kept.segments, segment]
    return ok('contact_segment', { contact_id: kept.id, segment_id: segment })
  }

  function send({ event, contact_id, email }: Received['json']): Said {
    const address = email ?? find(contact_id)?.email
    if (address === undefined) return notFound
    start(address)
    return ok('event', { event }, 202)
  }

  function refuses({ headers: { authorization } }: Received): Said | undefined {
    if (authorization === `Bearer ${SENDING_KEY}`) {
      return error(401, 'restricted_api_key', 'This API key is restricted to only send emails')
    }
    return authorization === `Bearer ${KEY}` ? undefined : error(403, 'invalid_api_key', 'API key is invalid')
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses,
      routes: {
        'GET /contacts': () => ok('list', { has_more: false, data: [] }),
        'POST /contacts': ({ json }) => create(json),
        'GET /contacts/{contact}': of(({ segments: _, topics: __, ...more }) => ok('contact', more)),
        // The official clients expect `contact`, where the document has `id`.
        'DELETE /contacts/{contact}': of(({ id, email }) =>
          ok('contact', { contact: id, deleted: contacts.delete(email) }),
        ),
        'GET /contacts/{contact}/segments': of(({ segments }) =>
          ok('list', { has_more: false, data: segments.map(id => ({ id, name: 'Waitlist' })) }),
        ),
        'POST /contacts/{contact}/segments/{segment}': of(add),
        'GET /segments/{id}': ({ at }) =>
          SEGMENTS.includes(at.id!) ? ok('segment', { id: at.id, name: 'Waitlist' }) : notFound,
        'GET /topics/{id}': ({ at }) => (at.id === TOPIC ? ok('topic', { id: TOPIC, name: 'News' }) : notFound),
        'GET /contact-properties': () =>
          ok('list', { has_more: false, data: Object.entries(PROPERTIES).map(([key, type]) => ({ key, type })) }),
        'POST /events/send': ({ json }) => send(json),
      },
    }),
    had(email) {
      const name = { first_name: 'Old', last_name: null }
      const more = {
        unsubscribed: true,
        properties: { plan: 'free' },
        topics: [{ id: TOPIC, subscription: 'opt_out' }],
      }
      const created_at = '2023-10-06 23:47:56.678+00'
      contacts.set(email, { id: newId(), email, ...name, created_at, ...more, segments: [OTHER_SEGMENT] })
    },
    joined: email => SEGMENTS.every(id => contacts.get(email)?.segments.includes(id)),
  }
}

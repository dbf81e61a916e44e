import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, opened, providerContract, type VendorFake } from '../contracts/provider.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { contactBook, type Routed, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, remove, start, vendorTable, waitAfter } from './table.ts'

const KEY = 're_key-of-the-test'
const SENDING_KEY = 're_may-only-send'
const SEGMENT = '78261eea-8f8b-4381-83c6-79fa7120f1cf'
const OTHER_SEGMENT = '2c3b1a2e-50f1-4c3c-8f0f-0d3c6f5c1a11'
const SEGMENTS = [SEGMENT, OTHER_SEGMENT]
/** What the owner has registered. */
const PROPERTIES = ['plan', 'email_source']

const resendSettings = (url: string) => ({
  RESEND_API_KEY: KEY,
  RESEND_SEGMENT_IDS: SEGMENT,
  RESEND_BASE_URL: url,
})
/** Everything that a contact can get. */
const resendMore = {
  RESEND_SEGMENT_IDS: SEGMENTS.join(),
  PROVIDER_FIELDS: 'plan=early, email_source=landing page',
}
const resendSendingKey = { RESEND_API_KEY: SENDING_KEY }

interface Kept {
  readonly id: string
  readonly email: string
  readonly first_name: string | null
  readonly last_name: string | null
  readonly created_at: string
  readonly unsubscribed: boolean
  readonly properties: object
  segments: readonly string[]
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
function resendFake(): VendorFake {
  const { contacts, find: findBy, start, facts } = contactBook<Kept>()

  let ids = 0

  const newId = () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`
  const find = (idOrEmail = '') => contacts.get(idOrEmail) ?? findBy(({ id }) => id === idOrEmail)

  function create({ email, first_name = null, last_name = null, ...more }: Received['json']): Said {
    const { segments = [], properties = {} } = more
    if (!/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return error(422, 'validation_error', 'Invalid `email` field. The email address needs to be valid.')
    }
    const ids: string[] = segments.map(({ id }: { id: string }) => id)
    if (ids.some(id => !SEGMENTS.includes(id))) return notFound
    const unknown = Object.keys(properties).find(name => !PROPERTIES.includes(name))
    if (unknown !== undefined) {
      return error(422, 'validation_error', `The following properties do not exist: ${unknown}`)
    }
    const kept = contacts.get(email) ?? {
      id: newId(),
      email,
      first_name,
      last_name,
      created_at: timeOf(new Date()),
      unsubscribed: false,
      properties,
      segments: ids,
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
        'GET /contacts/{contact}': of(({ segments: _, ...more }) => ok('contact', more)),
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
        'POST /events/send': ({ json }) => send(json),
      },
    }),
    had(email) {
      const name = { first_name: 'Old', last_name: null }
      const more = { unsubscribed: true, properties: { plan: 'free' } }
      const created_at = '2023-10-06 23:47:56.678+00'
      contacts.set(email, { id: newId(), email, ...name, created_at, ...more, segments: [OTHER_SEGMENT] })
    },
    joined: email => SEGMENTS.every(id => contacts.get(email)?.segments.includes(id)),
  }
}

const resend = {
  vendor: 'resend',
  settings: resendSettings,
  wrongKey: { RESEND_API_KEY: 're_another-key' },
  wrongSetting: { RESEND_SEGMENT_IDS: '00000000-0000-4000-8000-000000000000' },
  fake: resendFake,
  joining: { settings: resendMore, members: ['segments'] },
  refused: 'refused@example.com',
  sources: { event: within('payload') },
  start: {
    path: /^\/events\/send$/,
    done: { status: 202, body: { object: 'event', event: 'waitlist.joined' } },
  },
} as const
providerContract(resend)

const { rows, answers, sameRequests, missing } = vendorTable(resend)
const bob = contactOf('bob@example.com', { name: 'Bob' })
const odd = contactOf("a+b/c?d#e%20'f@example.com")
const contactId = 'e169aa45-1ecf-4183-9955-b1499d5701d3'
const { email } = ada
const [FIND, CREATE] = [`GET /contacts/${email}`, 'POST /contacts']
const withoutSegment = { RESEND_SEGMENT_IDS: '' }
const headers = ['authorization']

sameRequests('with a segment', {
  ours: [
    [check, null],
    [create(), 'created'],
    [create(), 'existing'],
    [start(), 'delivered'],
    [start({ ...ada, providerId: contactId }), 'misconfigured'],
    [remove(), { is: 'removed' }],
    [remove(), { is: 'absent' }],
  ],
  headers,
})

sameRequests('without a segment, of a name of one word', {
  set: withoutSegment,
  ours: [
    [check, null],
    [create(bob), 'created'],
  ],
  headers,
})

sameRequests('with everything that the settings give, and a known one that joins', {
  set: { ...resendMore, PROVIDER_EXISTING: 'join' },
  had: bob.email,
  ours: [
    [check, null],
    [create(), 'created'],
    [create(bob), 'existing'],
  ],
  headers,
})

const notAnId = error(422, 'validation_error', 'The `id` must be a valid UUID.')
rows({
  'nothing is sent of what is not set': {
    set: { ...withoutSegment, PROVIDER_EXISTING: 'join' },
    calls: [
      [create(), 'created', FIND, [CREATE, { email, first_name: 'Ada', last_name: 'King Lovelace' }]],
      [create(), 'existing', FIND],
    ],
  },
  'an address finds its way through the path': {
    calls: [
      [create(odd), 'created'],
      [create(odd), 'existing'],
    ],
  },
  'a key that may only send mail is our mistake': {
    set: resendSendingKey,
    calls: [
      [create(), 'misconfigured'],
      [check, 'misconfigured'],
    ],
  },
  'a property that is not there is no reason to drop a signup, whatever its name': {
    set: { PROVIDER_FIELDS: 'email=1' },
    calls: [[create(), 'misconfigured']],
  },
  'a 404 that is not theirs does not make an address new': {
    says: { status: 404, body: '<html>Not found</html>' },
    calls: [[create(), 'misconfigured', FIND]],
  },
  'an address that it takes for an id stays, is not created, and is to be removed by hand': {
    says: notAnId,
    calls: [
      [async provider => Object(await create()(provider)).alone, true, FIND],
      [create(), 'unreached'],
      [remove(), 'by hand'],
    ],
  },
  'what the rate limit asks for is kept, also where only its own field says it': {
    says: { status: 429, body: {}, headers: { 'ratelimit-remaining': '0', 'ratelimit-reset': '2' } },
    calls: [[waitAfter(create()), 2_000]],
  },
})

missing([[{ RESEND_SEGMENT_IDS: `${OTHER_SEGMENT},another` }, /the segment another: .*404/]])

const invalid = (message: string) => error(422, 'validation_error', message)
answers(
  'a creation',
  create(),
  [
    [error(400, 'validation_error', 'The `email` field is invalid.'), 'refused'],
    [invalid('Invalid `email` field.'), 'refused'],
    [invalid('The `email` must be a valid email.'), 'refused'],
    [invalid('The following properties do not exist: email, plan'), 'misconfigured'],
    [invalid('Invalid `from` field. It needs to follow the `email@example.com` format.'), 'misconfigured'],
    [invalid('Invalid `segments` field.'), 'misconfigured'],
    [error(403, 'validation_error', 'Only your own email address.'), 'misconfigured'],
    [error(404, 'not_found', 'Segment not found'), 'misconfigured'],
    [error(405, 'method_not_allowed', 'Method is not allowed'), 'misconfigured'],
    [{ status: 201, body: { object: 'contact' } }, 'unclear'],
  ],
  { to: 'POST' },
)

const found = (created_at: string): Said => ({ status: 200, body: { object: 'contact', id: 'c1', email, created_at } })
const existing = { is: 'existing', providerId: 'c1' }
answers('in doubt, a look-up', createAgain(), [
  [found('2023-10-06 23:47:56.678+00'), { ...existing, ours: false }],
  [found(new Date().toISOString()), { ...existing, ours: true }],
  [found('yesterday'), { ...existing, ours: undefined }],
])

for (const set of [{}, withoutSegment]) {
  for (const body of [{}, '<html>Welcome</html>']) {
    answers('the check', check, [[{ status: 200, body }, 'unreached']], { set })
  }
}
answers('a start', start(), [[{ status: 200, body: {} }, 'unclear']])

test('a start is waited for when it takes longer than a visitor would wait', async t => {
  const server = await startReceiver(t, resendFake().answer)
  const provider = await opened(t, resend, resendSettings(server.url), 20)
  server.next('slow')
  assert.deepEqual(await start()(provider), { is: 'delivered' })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, eventOf, opened, providerContract, type VendorFake } from '../contracts/provider.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, object, taking, text, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, start, vendorTable, waitAfter } from './table.ts'

const KEY = 'buttondown-key-of-the-test'
const EMAIL = 'em_01hz8q5x6v7w8y9z0a1b2c3d4e'
const ADDRESS = /^[a-zA-Z0-9.'_%+\-!]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$/

const buttondownSettings = (url: string) => ({
  BUTTONDOWN_API_KEY: KEY,
  BUTTONDOWN_BASE_URL: url,
  BUTTONDOWN_EMAIL_ID: EMAIL,
})
const buttondownTags = { BUTTONDOWN_TAGS: 'early,friends' }

/*
 * Facts of https://github.com/buttondown/openapi (MIT), document 1.0.0 of 2026-08, as far as we send or read it. Unknown
 * members are refused.
 */
const ofSubscribers = { tags: listOf(text), metadata: object() }
const creation = exactly(
  { email_address: { type: 'string', maxLength: 254 } },
  {
    ...ofSubscribers,
    type: { enum: ['regular', 'unactivated', null] },
  },
)

const error = (status: number, code: string, detail: string): Said => ({ status, body: { code, detail, metadata: {} } })
const invalid = (place: string): Said => ({
  status: 422,
  body: { detail: [{ type: 'value_error', loc: ['body', 'input', place], msg: 'Not valid.' }] },
})
const notFound = error(404, 'not_found', 'Not found.')

/**
 * As documented at https://docs.buttondown.com: a known address is a 400, a repeated idempotency key gets the first
 * answer again, and `daily` creations are let through, then a 400 points to the import.
 */
function buttondownFake(daily = Number.POSITIVE_INFINITY): VendorFake {
  const { contacts, find: findBy, start, facts } = contactBook<Record<string, unknown>>()
  const answered = new Map<string, Said>()
  let ids = 0
  let creations = 0

  const find = (idOrEmail = '') => contacts.get(idOrEmail) ?? findBy(({ id }) => id === idOrEmail)
  const shown = (found: object | undefined): Said => (found === undefined ? notFound : { status: 200, body: found })

  function keep(email: string, more: Record<string, unknown>, created: Date): Record<string, unknown> {
    const id = `sub_0${String(++ids).padStart(25, '0')}`
    const none = { type: 'unactivated', tags: [], metadata: {} }
    const kept = { id, creation_date: created.toISOString(), email_address: email, ...none, ...more }
    contacts.set(email, kept)
    return kept
  }

  function create({
    json: { email_address: email, type, tags = [], metadata = {}, ...more },
    headers,
  }: Received): Said {
    if (!ADDRESS.test(email)) return invalid('email_address')
    if (email.startsWith('blocked')) return error(400, 'email_blocked', 'This address is blocked.')
    if (tags.includes('forbidden')) return error(400, 'tag_invalid', 'Your plan has no tags.')
    const known = contacts.get(email)
    if (known !== undefined) {
      if (!/^(add|overwrite)$/.test(headers['x-buttondown-collision-behavior'] ?? 'no_op')) {
        return error(400, 'email_already_exists', `${email} is already subscribed.`)
      }
      return { status: 201, body: Object.assign(known, { tags, metadata }) }
    }
    if (++creations > daily) return error(400, 'invalid_input', 'Use POST /v1/imports to add subscribers in bulk.')
    return { status: 201, body: keep(email, { ...more, tags, metadata, ...(type ? { type } : {}) }, new Date()) }
  }

  function remove(subscriber: string | undefined): Said {
    const found = find(subscriber)
    return found !== undefined && contacts.delete(String(found.email_address)) ? { status: 204 } : notFound
  }

  function send(subscriber: string | undefined, mail: string | undefined, key: string | undefined): Said {
    const found = find(subscriber)
    const known = answered.get(key ?? '')
    if (known !== undefined) return known
    if (found === undefined || mail !== EMAIL) return notFound
    start(String(found.email_address))
    const said = { status: 200, body: {} }
    if (key !== undefined) answered.set(key, said)
    return said
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization !== `Token ${KEY}`
          ? error(401, 'unauthorized', 'Invalid token.')
          : headers['x-api-version'] !== '2026-04-01' || (headers['x-idempotency-key'] ?? '').length > 200
            ? error(400, 'invalid_input', 'A header is not valid.')
            : undefined,
      routes: {
        'POST /v1/subscribers': taking(creation, create),
        'GET /v1/subscribers/{id_or_email}': ({ at }) => shown(find(at.id_or_email)),
        // What is not sent stays; tags are replaced.
        'PATCH /v1/subscribers/{id_or_email}': taking(exactly({}, { tags: listOf(text) }), ({ at, json }) => {
          const found = find(at.id_or_email)
          return shown(found && Object.assign(found, json))
        }),
        'DELETE /v1/subscribers/{id_or_email}': ({ at }) => remove(at.id_or_email),
        'POST /v1/subscribers/{id_or_email}/emails/{email_id}': ({ at, headers }) =>
          send(at.id_or_email, at.email_id, headers['x-idempotency-key']),
        'GET /v1/emails/{id}': ({ at }) =>
          shown(at.id === EMAIL ? { id: EMAIL, body: 'Welcome! '.repeat(10_000) } : undefined),
        'GET /v1/tags': () => ({ status: 200, body: { results: [], count: 0 } }),
        'GET /v1/accounts/me': () => ({
          status: 200,
          body: { username: 'example', email_address: 'owner@example.com' },
        }),
      },
    }),
    had(email) {
      const more = { type: 'unsubscribed', metadata: { name: 'Old' }, tags: ['customers', 'early'] }
      keep(email, more, new Date('2020-01-01'))
    },
    joined(email) {
      const tags = contacts.get(email)?.tags as string[] | undefined
      return ['early', 'friends'].every(tag => tags?.includes(tag))
    },
  }
}

const buttondown = {
  vendor: 'buttondown',
  settings: buttondownSettings,
  wrongKey: { BUTTONDOWN_API_KEY: 'another-key' },
  wrongSetting: { BUTTONDOWN_TAGS: 'forbidden' },
  fake: () => buttondownFake(),
  joining: { settings: buttondownTags, members: ['tags'] },
  refused: 'blocked@example.com',
  sources: { contact: within('metadata') },
  start: {
    path: /^\/v1\/subscribers\/[^/]+\/emails\/[^/]+$/,
    done: { status: 200, body: {} },
    id: ({ headers }: Received) => headers['x-idempotency-key'],
  },
} as const
providerContract(buttondown)

const { started, rows, answers, missing } = vendorTable(buttondown)
const join = { ...buttondownTags, PROVIDER_EXISTING: 'join' }
const ID = 'sub_00000000000000000000000001'
const CREATE = 'POST /v1/subscribers'
const FIND = 'GET /v1/subscribers/ada@example.com'
const CHANGE = 'PATCH /v1/subscribers/ada@example.com'
const bob = contactOf('bob@example.com', { name: 'Bob' })
const another = contactOf('ada@example.com', { id: '01981d4f-3c00-7c4e-9d0a-000000000000' })
const odd = contactOf('a%41?b#c@example.com')
const metadata = { name: 'Ada King Lovelace', waitlist_id: ada.id }
const saying = (status: number, code: string): Said => ({ status, body: code && { code, detail: 'Something.' } })

rows({
  'a subscriber has the name and our mark in its metadata, and is asked to confirm': {
    calls: [[create(), 'created', [CREATE, { email_address: ada.email, metadata }]]],
  },
  'a subscriber has the tags, and is not asked to confirm if told so': {
    set: { BUTTONDOWN_TAGS: 'Early access, Bêta', BUTTONDOWN_DOUBLE_OPT_IN: 'false' },
    calls: [
      [
        create(bob),
        'created',
        [
          CREATE,
          {
            email_address: bob.email,
            type: 'regular',
            tags: ['Early access', 'Bêta'],
            metadata: { name: 'Bob', waitlist_id: ada.id },
          },
        ],
      ],
    ],
  },
  'a known subscriber keeps its tags, stays unsubscribed, and is changed once': {
    set: join,
    had: ada.email,
    calls: [
      [create(), 'existing', CREATE, FIND, [CHANGE, { tags: ['customers', 'early', 'friends'] }]],
      [create(), 'existing', CREATE, FIND],
    ],
    keeps: { tags: ['customers', 'early', 'friends'], type: 'unsubscribed' },
  },
  'a known subscriber that cannot be found stays known, and nothing waits for it': {
    set: join,
    had: ada.email,
    says: ({ method }) => (method === 'GET' ? saying(404, 'not_found') : undefined),
    calls: [
      [create(), 'existing', CREATE, FIND],
      [createAgain(), { is: 'existing', ours: false }, CREATE, FIND, FIND],
    ],
  },
  'in doubt, an existing subscriber is ours by its mark alone': {
    calls: [
      [create(), 'created'],
      [createAgain(), { is: 'existing', providerId: ID, ours: true }],
      [createAgain(another), { is: 'existing', providerId: ID, ours: false }],
    ],
  },
  'in doubt, any address is looked for': {
    says: saying(400, 'email_already_exists'),
    calls: [[createAgain(odd), 'misconfigured', CREATE, `GET /v1/subscribers/${odd.email}`]],
  },
  'an address that Buttondown cannot take is refused': {
    calls: [[create(contactOf('ada#1@example.com')), 'refused']],
  },
  'a 429 waits as long as it says': {
    says: { status: 429, body: { detail: 'No.' }, headers: { 'retry-after': '45', 'x-ratelimit-reset': '1735776060' } },
    calls: [[waitAfter(create()), 45_000]],
  },
  'without a mail the automation is its own, and the check tries the key alone': {
    set: { BUTTONDOWN_EMAIL_ID: '' },
    calls: [
      [async ({ automation }) => automation, null],
      [check, null, 'GET /v1/accounts/me'],
    ],
  },
  'the check looks for a mail, however long, and for tags': {
    set: buttondownTags,
    calls: [[check, null, 'GET /v1/accounts/me', `GET /v1/emails/${EMAIL}`, 'GET /v1/tags?page_size=1']],
  },
  'the check names tags that the plan does not have': {
    set: buttondownTags,
    says: ({ path }) => (path === '/v1/tags' ? saying(403, 'feature_disabled') : undefined),
    calls: [[check, /^check the tags: .*feature_disabled/]],
  },
})

missing([[{ BUTTONDOWN_EMAIL_ID: 'em_other' }, /^check the mail: answered with 404/]])

const refused = (code: string) => [saying(400, code), { is: 'refused', reason: 'it is not accepted there' }] as const
answers('a creation', create(), [
  [saying(400, 'email_already_exists'), 'existing'],
  [saying(400, 'subscriber_already_exists'), 'existing'],
  [saying(400, 'email_invalid'), 'refused'],
  // Nothing of what an address did before.
  refused('email_blocked'),
  refused('subscriber_suppressed'),
  [saying(400, 'rate_limited'), 'unreached'],
  [saying(403, 'feature_disabled'), 'misconfigured'],
  [saying(403, 'email_blocked'), 'misconfigured'],
  [saying(409, ''), 'unclear'],
  [saying(400, 'constructor'), 'misconfigured'],
  ...['email_empty', 'ip_address_spammy', 'tag_invalid'].map(code => [saying(400, code), 'misconfigured'] as const),
])

const [address, tag] = [
  ['body', 'input', 'email_address'],
  ['body', 'input', 'tags', 0],
] as const
const wrong = (...places: readonly (readonly unknown[])[]): Said => ({
  status: 422,
  body: { detail: places.map(loc => ({ type: 'value_error', loc, msg: 'Not valid.' })) },
})
answers('a creation', create(), [
  [wrong(address), 'refused'],
  [wrong(tag), 'misconfigured'],
  [wrong(address, tag), 'misconfigured'],
  [wrong(), 'misconfigured'],
])

const patched = { to: 'PATCH', set: join, had: ada.email }
for (const act of [create(), createAgain()]) {
  answers('a change of a known subscriber', act, [[saying(400, 'firewall_blocked'), 'existing']], patched)
  answers('a change of a known subscriber', act, [[saying(400, 'email_invalid'), 'existing']], patched)
}
answers('a change of a known subscriber', create(), [[saying(400, 'tag_invalid'), 'misconfigured']], patched)

answers('a mail', start(), [
  [saying(409, ''), 'unclear'],
  [{ status: 200, body: '' }, 'unclear'],
  [{ status: 200, body: [] }, 'unclear'],
])

test('one mail is sent to the subscriber, under the id of the event; a creation has none, which would repeat a refusal', async t => {
  const { server, provider } = await started(t)
  await provider.createContact(ada, false, never)
  for (const contact of [ada, { ...ada, providerId: ID }]) {
    assert.deepEqual(await provider.automation!.deliver(eventOf(contact), never), { is: 'delivered' })
  }
  const { id } = eventOf(ada)
  assert.deepEqual(
    server.received.map(({ path, headers }) => [path, headers['x-idempotency-key']]),
    [
      ['/v1/subscribers', undefined],
      [`/v1/subscribers/ada@example.com/emails/${EMAIL}`, id],
      [`/v1/subscribers/${ID}/emails/${EMAIL}`, id],
    ],
  )
})

test('what the firewall blocks is kept, and keeps nobody else waiting', async t => {
  const { provider } = await started(t, {}, saying(400, 'subscriber_blocked'))
  const creation = await provider.createContact(ada, false, never)
  assert.ok(creation.is === 'unreached' && creation.alone === true, JSON.stringify(creation))
  assert.match(creation.why, /subscriber_blocked/)
})

test('over the daily limit a creation is kept for later, though that is a 400', async t => {
  const server = await startReceiver(t, buttondownFake(1).answer)
  const provider = await opened(t, buttondown, buttondownSettings(server.url))
  assert.equal((await provider.createContact(ada, false, never)).is, 'created')
  const second = await provider.createContact(bob, false, never)
  assert.ok(second.is === 'unreached' && /a day/.test(second.why), JSON.stringify(second))
  assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
})

test('in doubt, a lookup that fails leaves the doubt', async t => {
  const { fake, server, provider } = await started(t)
  fake.had(ada.email)
  server.next(null, '500 before')
  assert.equal((await provider.createContact(ada, true, never)).is, 'unreached')
})

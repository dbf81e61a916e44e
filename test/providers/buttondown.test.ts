import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { buttondownFake, buttondownMore, buttondownSettings, EMAIL, errorCodes } from './buttondown.fake.ts'
import { ada, check, create, createAgain, never, start, vendorTable, waitAfter } from './table.ts'

const buttondown = {
  vendor: 'buttondown',
  settings: buttondownSettings,
  wrongKey: { BUTTONDOWN_API_KEY: 'another-key' },
  wrongSetting: { BUTTONDOWN_TAGS: 'forbidden' },
  fake: () => buttondownFake(),
  joining: { settings: buttondownMore, members: ['tags'] },
  refused: 'blocked@example.com',
  sources: [
    {
      contact: (name: string) =>
        ['utm_source', 'utm_medium', 'utm_campaign'].includes(name) ? name : `metadata.${name}`,
    },
  ],
  start: {
    path: /^\/v1\/subscribers\/[^/]+\/emails\/[^/]+$/,
    done: { status: 200, body: {} },
    id: ({ headers }: Received) => headers['x-idempotency-key'],
  },
} as const
providerContract(buttondown)

const { started, rows, answers } = vendorTable(buttondown)
const join = { ...buttondownMore, PROVIDER_EXISTING: 'join' }
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
  'a subscriber has the tags and the page that it comes from, and is not asked to confirm if told so': {
    set: { ...buttondownMore, BUTTONDOWN_TAGS: 'Early access, Bêta', BUTTONDOWN_DOUBLE_OPT_IN: 'false' },
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
            referrer_url: buttondownMore.BUTTONDOWN_REFERRER_URL,
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
    set: buttondownMore,
    calls: [[check, null, 'GET /v1/accounts/me', `GET /v1/emails/${EMAIL}`, 'GET /v1/tags?page_size=1']],
  },
  'the check names a mail that is not there': {
    set: { BUTTONDOWN_EMAIL_ID: 'em_other' },
    calls: [[check, /^check the mail: answered with 404/]],
  },
  'the check names tags that the plan does not have': {
    set: buttondownMore,
    says: ({ path }) => (path === '/v1/tags' ? saying(403, 'feature_disabled') : undefined),
    calls: [[check, /^check the tags: .*feature_disabled/]],
  },
})

const refused = (code: string) => [saying(400, code), { is: 'refused', reason: 'it is not accepted there' }] as const
const particular = [
  'email_already_exists',
  'subscriber_already_exists',
  'email_invalid',
  'email_blocked',
  'rate_limited',
]
const others = errorCodes.filter(
  code => !particular.includes(code) && !/^subscriber_(?:blocked|suppressed)$/.test(code),
)
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
  ...others.map(code => [saying(400, code), 'misconfigured'] as const),
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

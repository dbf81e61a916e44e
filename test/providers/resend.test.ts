import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Resend } from 'resend'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, opened, providerContract } from '../contracts/provider.ts'
import { type Said, startReceiver } from '../harness/receiver.ts'
import { OTHER_SEGMENT, resendFake, resendMore, resendSendingKey, resendSettings, TOPIC } from './resend.fake.ts'
import { ada, check, create, createAgain, remove, start, vendorTable, waitAfter } from './table.ts'

const resend = {
  vendor: 'resend',
  settings: resendSettings,
  wrongKey: { RESEND_API_KEY: 're_another-key' },
  wrongSetting: { RESEND_SEGMENT_IDS: '00000000-0000-4000-8000-000000000000' },
  fake: resendFake,
  joining: { settings: resendMore, members: ['segments'] },
  refused: 'refused@example.com',
  sources: [{ event: within('payload') }],
  start: {
    path: /^\/events\/send$/,
    done: { status: 202, body: { object: 'event', event: 'waitlist.joined' } },
  },
} as const
providerContract(resend)

const { rows, answers, sameRequests } = vendorTable(resend)
const { RESEND_API_KEY: key, RESEND_SEGMENT_IDS: segment } = resendSettings('')
const bob = contactOf('bob@example.com', { name: 'Bob' })
const odd = contactOf("a+b/c?d#e%20'f@example.com")
const contactId = 'e169aa45-1ecf-4183-9955-b1499d5701d3'
const { email } = ada
const name = { firstName: 'Ada', lastName: 'King Lovelace' }
const [FIND, CREATE] = [`GET /contacts/${email}`, 'POST /contacts']
const withoutSegment = { RESEND_SEGMENT_IDS: '' }
const headers = ['authorization']
const error = (status: number, name: string, message: string): Said => ({
  status,
  body: { statusCode: status, name, message },
})

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
  async theirs(baseUrl) {
    const { contacts, events, segments } = new Resend(key, { baseUrl })
    await segments.get(segment)
    await contacts.get({ email })
    await contacts.create({ email, ...name, segments: [{ id: segment }] })
    await contacts.get({ email })
    await events.send({ event: 'waitlist.joined', email })
    await events.send({ event: 'waitlist.joined', contactId })
    await contacts.remove({ email })
    await contacts.remove({ email })
  },
  headers,
})

sameRequests('without a segment, of a name of one word', {
  set: withoutSegment,
  ours: [
    [check, null],
    [create(bob), 'created'],
  ],
  async theirs(baseUrl) {
    const { contacts } = new Resend(key, { baseUrl })
    await contacts.list({ limit: 1 })
    await contacts.get({ email: bob.email })
    await contacts.create({ email: bob.email, firstName: 'Bob' })
  },
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
  async theirs(baseUrl) {
    const { contacts, contactProperties, segments, topics } = new Resend(key, { baseUrl })
    await segments.get(segment)
    await segments.get(OTHER_SEGMENT)
    await topics.get(TOPIC)
    await contactProperties.list({ limit: 100 })
    await contacts.get({ email })
    await contacts.create({
      email,
      ...name,
      properties: { plan: 'early', email_source: 'landing page' },
      segments: [{ id: segment }, { id: OTHER_SEGMENT }],
      topics: [{ id: TOPIC, subscription: 'opt_in' }],
    })
    const { data } = await contacts.get({ email: bob.email })
    await contacts.segments.list({ contactId: data!.id, limit: 100 })
    await contacts.segments.add({ contactId: data!.id, segmentId: segment })
  },
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
    set: { RESEND_PROPERTIES: 'email=1' },
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

const wrong: readonly (readonly [Record<string, string>, RegExp])[] = [
  [{ RESEND_SEGMENT_IDS: `${OTHER_SEGMENT},another` }, /the segment another: .*404/],
  [{ RESEND_TOPIC_IDS: `${TOPIC},another` }, /the topic another: .*404/],
  [{ RESEND_PROPERTIES: 'plan=early,colour=blue' }, /there is no colour of type string/],
  [{ RESEND_PROPERTIES: 'seats=7' }, /there is no seats of type string/],
]
for (const [change, why] of wrong) {
  for (const rest of [{}, withoutSegment]) {
    const set = { ...rest, ...change }
    rows({ [`the check names what is not there of ${JSON.stringify(set)}`]: { set, calls: [[check, why]] } })
  }
}

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

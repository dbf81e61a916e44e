import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Resend } from 'resend'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Said, startVendor } from '../harness/vendor.ts'
import { assertDocumented, assertSameWire, exchanged, recorded } from '../harness/wire.ts'
import { resendCalls } from './resend.contract.ts'
import { OTHER_SEGMENT, resendFake, resendMore, resendSendingKey, resendSettings, TOPIC } from './resend.fake.ts'

const resend = { vendor: 'resend' } as const
const never = new AbortController().signal
const ada = contactOf('ada@example.com')
const error = (status: number, name: string, message: string): Said => ({
  status,
  body: { statusCode: status, name, message },
})

providerContract({
  vendor: 'resend',
  settings: resendSettings,
  wrongKey: { RESEND_API_KEY: 're_another-key' },
  wrongSetting: { RESEND_SEGMENT_IDS: '00000000-0000-4000-8000-000000000000' },
  fake: resendFake,
  joining: { settings: resendMore, members: ['segments'] },
  refused: 'refused@example.com',
})

test("our requests are those of the vendor's own client", async t => {
  const { RESEND_API_KEY: key, RESEND_SEGMENT_IDS: segment } = resendSettings('')

  const ours = await recorded(t, resendFake().answer, async url => {
    const provider = await opened(t, resend, resendSettings(url))
    await provider.check(never)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, false, never)
    await provider.automation!.deliver(eventOf(ada), never)
    assert.deepEqual(await provider.remove('ada@example.com', never), { is: 'removed' })
    const { RESEND_SEGMENT_IDS, ...withoutSegment } = resendSettings(url)
    const plain = await opened(t, resend, withoutSegment)
    await plain.check(never)
    await plain.createContact(contactOf('bob@example.com', { name: 'Bob' }), false, never)
  })

  const theirs = await recorded(t, resendFake().answer, async baseUrl => {
    const client = new Resend(key, { baseUrl })
    await client.segments.get(segment)
    await client.contacts.get({ email: 'ada@example.com' })
    await client.contacts.create({
      email: 'ada@example.com',
      firstName: 'Ada',
      lastName: 'King Lovelace',
      segments: [{ id: segment }],
    })
    await client.contacts.get({ email: 'ada@example.com' })
    await client.events.send({ event: 'waitlist.joined', email: 'ada@example.com' })
    await client.contacts.remove({ email: 'ada@example.com' })
    await client.contacts.list({ limit: 1 })
    await client.contacts.get({ email: 'bob@example.com' })
    await client.contacts.create({ email: 'bob@example.com', firstName: 'Bob' })
  })
  assertSameWire(ours, theirs, ['authorization'])
})

test('a contact with everything that the settings give, and a known one that joins, are asked for as their client does', async t => {
  const { RESEND_API_KEY: key, RESEND_SEGMENT_IDS: segment } = resendSettings('')
  const fakes = [resendFake(), resendFake()] as const
  for (const fake of fakes) fake.had('old@example.com')

  const ours = await recorded(t, fakes[0].answer, async url => {
    const provider = await opened(t, resend, { ...resendSettings(url), ...resendMore, PROVIDER_EXISTING: 'join' })
    assert.equal(await provider.check(never), null)
    await provider.createContact(ada, false, never)
    await provider.createContact(contactOf('old@example.com'), false, never)
  })

  const theirs = await recorded(t, fakes[1].answer, async baseUrl => {
    const client = new Resend(key, { baseUrl })
    await client.segments.get(segment)
    await client.segments.get(OTHER_SEGMENT)
    await client.topics.get(TOPIC)
    await client.contactProperties.list({ limit: 100 })
    await client.contacts.get({ email: 'ada@example.com' })
    await client.contacts.create({
      email: 'ada@example.com',
      firstName: 'Ada',
      lastName: 'King Lovelace',
      properties: { plan: 'early', email_source: 'landing page' },
      segments: [{ id: segment }, { id: OTHER_SEGMENT }],
      topics: [{ id: TOPIC, subscription: 'opt_in' }],
    })
    const { data } = await client.contacts.get({ email: 'old@example.com' })
    await client.contacts.segments.list({ contactId: data!.id, limit: 100 })
    await client.contacts.segments.add({ contactId: data!.id, segmentId: segment })
  })
  const withoutIds = (all: typeof ours) =>
    all.map(each => ({ ...each, path: each.path.replace(/^\/contacts\/[0-9a-f-]{36}/, '/contacts/…') }))
  assertSameWire(withoutIds(ours), withoutIds(theirs), ['authorization'])
})

test('the id of a contact, where it is known, names it to the automation', async t => {
  const contactId = 'e169aa45-1ecf-4183-9955-b1499d5701d3'
  const answer = (): Said => ({ status: 202, body: { object: 'event', event: 'waitlist.joined' } })
  const ours = await recorded(t, answer, async url => {
    const provider = await opened(t, resend, resendSettings(url))
    await provider.automation!.deliver(eventOf({ ...ada, providerId: contactId }), never)
  })
  const theirs = await recorded(t, answer, baseUrl =>
    new Resend(resendSettings('').RESEND_API_KEY, { baseUrl }).events.send({ event: 'waitlist.joined', contactId }),
  )
  assertSameWire(ours, theirs, ['authorization'])
})

test('requests and answers are those of the contract that the vendor publishes', async t => {
  const exchanges = await exchanged(t, resendFake().answer, async url => {
    const provider = await opened(t, resend, resendSettings(url))
    assert.equal(await provider.check(never), null)
    const creation = await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.createContact(contactOf('refused@example.com'), false, never)
    assert.ok(creation.is === 'created')
    await provider.automation!.deliver(eventOf(ada), never)
    await provider.automation!.deliver(eventOf({ ...ada, providerId: creation.providerId! }), never)
    const plain = await opened(t, resend, { ...resendSettings(url), RESEND_SEGMENT_IDS: '' })
    assert.equal(await plain.check(never), null)
    const full = await opened(t, resend, { ...resendSettings(url), ...resendMore, PROVIDER_EXISTING: 'join' })
    assert.equal(await full.check(never), null)
    assert.equal((await full.createContact(contactOf('bob@example.com'), false, never)).is, 'created')
    assert.equal((await full.createContact(ada, false, never)).is, 'existing')
    for (const is of ['removed', 'absent']) assert.equal((await full.remove(ada.email, never)).is, is)
  })
  assert.equal(exchanges.length, 20)
  for (const [asked, said] of exchanges) assertDocumented(resendCalls, asked, said)
})

test('an address finds its way through the path', async t => {
  const odd = contactOf("a+b/c?d#e%20'f@example.com")
  const fake = resendFake()
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, resend, resendSettings(server.url))
  assert.equal((await provider.createContact(odd, false, never)).is, 'created')
  assert.equal((await provider.createContact(odd, false, never)).is, 'existing')
  assert.equal(fake.count(odd.email), 1)
})

test('a key that may only send mail is our mistake', async t => {
  const server = await startVendor(t, resendFake().answer)
  const provider = await opened(t, resend, { ...resendSettings(server.url), ...resendSendingKey })
  assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
  assert.equal((await provider.check(never))?.is, 'misconfigured')
})

const wrong: readonly (readonly [string, Record<string, string>, RegExp])[] = [
  ['a segment', { RESEND_SEGMENT_IDS: `${OTHER_SEGMENT},another` }, /the segment another: .*404/],
  ['a topic', { RESEND_TOPIC_IDS: `${TOPIC},another` }, /the topic another: .*404/],
  ['a property', { RESEND_PROPERTIES: 'plan=early,colour=blue' }, /there is no colour of type string/],
  ['a property of another type', { RESEND_PROPERTIES: 'seats=7' }, /there is no seats of type string/],
]
for (const [what, change, why] of wrong) {
  test(`the check names ${what} that is not there`, async t => {
    const server = await startVendor(t, resendFake().answer)
    for (const rest of [{}, { RESEND_SEGMENT_IDS: '' }]) {
      const provider = await opened(t, resend, { ...resendSettings(server.url), ...rest, ...change })
      const failure = await provider.check(never)
      assert.ok(failure?.is === 'misconfigured' && why.test(failure.why), JSON.stringify(failure))
    }
    assert.ok(server.asked.every(({ method }) => method === 'GET'))
  })
}

test('a property that is not there is no reason to drop a signup, whatever its name', async t => {
  const server = await startVendor(t, resendFake().answer)
  const provider = await opened(t, resend, { ...resendSettings(server.url), RESEND_PROPERTIES: 'email=1' })
  assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
})

test('nothing is sent of what is not set', async t => {
  const server = await startVendor(t, resendFake().answer)
  const { RESEND_SEGMENT_IDS, ...least } = resendSettings(server.url)
  const provider = await opened(t, resend, { ...least, PROVIDER_EXISTING: 'join' })
  await provider.createContact(ada, false, never)
  assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
  assert.deepEqual(
    server.asked.map(({ method, path, json }) => [method, path, json]),
    [
      ['GET', '/contacts/ada@example.com', undefined],
      ['POST', '/contacts', { email: 'ada@example.com', first_name: 'Ada', last_name: 'King Lovelace' }],
      ['GET', '/contacts/ada@example.com', undefined],
    ],
  )
})

const answers: readonly (readonly [string, Said, string])[] = [
  ['a validation error about the email', error(400, 'validation_error', 'The `email` field is invalid.'), 'refused'],
  ['the same with 422', error(422, 'validation_error', 'Invalid `email` field.'), 'refused'],
  ['the same in other words', error(422, 'validation_error', 'The `email` must be a valid email.'), 'refused'],
  [
    'a validation error about a property',
    error(422, 'validation_error', 'The following properties do not exist: email, plan'),
    'misconfigured',
  ],
  [
    'a validation error that only mentions an email',
    error(
      422,
      'validation_error',
      'Invalid `from` field. The email address needs to follow the `email@example.com` format.',
    ),
    'misconfigured',
  ],
  ['a validation error about a segment', error(422, 'validation_error', 'Invalid `segments` field.'), 'misconfigured'],
  ['a validation error with 403', error(403, 'validation_error', 'Only your own email address.'), 'misconfigured'],
  ['a missing key', error(401, 'missing_api_key', 'Missing API key'), 'misconfigured'],
  ['an unknown key', error(403, 'invalid_api_key', 'API key is invalid'), 'misconfigured'],
  ['a segment that is not there', error(404, 'not_found', 'Segment not found'), 'misconfigured'],
  ['a method that is not allowed', error(405, 'method_not_allowed', 'Method is not allowed'), 'misconfigured'],
  ['a daily quota', error(429, 'daily_quota_exceeded', 'You have reached your daily quota'), 'unreached'],
  ['an error of theirs', error(500, 'application_error', 'An unexpected error occurred'), 'unclear'],
  ['an answer without an id', { status: 201, body: { object: 'contact' } }, 'unclear'],
]

for (const [what, said, expected] of answers) {
  test(`a creation that meets ${what} is ${expected}`, async t => {
    const fake = resendFake()
    const server = await startVendor(t, asked => (asked.method === 'POST' ? said : fake.answer(asked)))
    const provider = await opened(t, resend, resendSettings(server.url))
    assert.equal((await provider.createContact(ada, false, never)).is, expected)
  })
}

test('a 404 that is not theirs does not make an address new', async t => {
  const server = await startVendor(t, () => ({ status: 404, body: '<html>Not found</html>' }))
  const provider = await opened(t, resend, resendSettings(server.url))
  assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
  assert.equal(server.asked.length, 1)
})

test('an address that it takes for an id stays, is not created, and keeps nobody else waiting', async t => {
  const server = await startVendor(t, () => error(422, 'validation_error', 'The `id` must be a valid UUID.'))
  const provider = await opened(t, resend, resendSettings(server.url))
  const creation = await provider.createContact(ada, false, never)
  assert.ok(creation.is === 'unreached' && creation.alone === true, JSON.stringify(creation))
  assert.equal(server.asked.length, 1)
})

test('what the rate limit asks for is kept, also where only its own field says it', async t => {
  const headers = { 'ratelimit-limit': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '2' }
  const server = await startVendor(t, () => ({ ...error(429, 'rate_limit_exceeded', 'Too many requests'), headers }))
  const provider = await opened(t, resend, resendSettings(server.url))
  const creation = await provider.createContact(ada, false, never)
  assert.ok(creation.is === 'unreached')
  assert.equal(creation.retryAfter, 2_000)
})

const created: readonly (readonly [string, string, object])[] = [
  ['long before the signup', '2023-10-06 23:47:56.678+00', { ours: false }],
  ['at the signup', new Date().toISOString(), { ours: true }],
  ['at a time that makes no sense', 'yesterday', { ours: undefined }],
]

for (const [when, created_at, expected] of created) {
  test(`a contact that was made ${when} is told from ours`, async t => {
    const body = { object: 'contact', id: 'c1', email: 'ada@example.com', created_at }
    const server = await startVendor(t, () => ({ status: 200, body }))
    const provider = await opened(t, resend, resendSettings(server.url))
    const creation = await provider.createContact(ada, true, never)
    assert.deepEqual(creation, { is: 'existing', providerId: 'c1', ...expected })
  })
}

test('a 2xx that is not as documented is neither a good key nor a start of the automation', async t => {
  for (const body of [{}, '<html>Welcome</html>']) {
    const server = await startVendor(t, () => ({ status: 200, body }))
    for (const change of [{}, { RESEND_SEGMENT_IDS: '' }]) {
      const provider = await opened(t, resend, { ...resendSettings(server.url), ...change })
      assert.equal((await provider.check(never))?.is, 'unreached')
      assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, 'unclear')
    }
  }
})

test('an address that it takes for an id is to be removed by hand', async t => {
  const message = 'The `id` must be a valid UUID.'
  const { url } = await startVendor(t, () => ({ status: 422, body: { name: 'validation_error', message } }))
  const provider = await opened(t, resend, resendSettings(url))
  assert.equal((await provider.remove('ada@example.com', never)).is, 'by hand')
})

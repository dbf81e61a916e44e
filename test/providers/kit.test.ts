import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { assertDocumented, exchanged } from '../harness/wire.ts'
import { kitCalls } from './kit.contract.ts'
import { kitFake, kitInactiveSequence, kitSequence, kitSettings } from './kit.fake.ts'
import { starting } from './started.ts'

const kit = { vendor: 'kit' } as const
const never = new AbortController().signal
const ada = contactOf('ada@example.com')

providerContract({
  vendor: 'kit',
  settings: kitSettings,
  wrongKey: { KIT_API_KEY: 'kit_another-key' },
  fake: kitFake,
  refused: 'refused@example.com',
})

const started = starting('kit', kitFake, kitSettings)

const sent = ({ method, path, json }: Asked) => [method, path, json]

test('requests and answers are those of the contract that the vendor publishes', async t => {
  const exchanges = await exchanged(t, kitFake().answer, async url => {
    const provider = await opened(t, kit, { ...kitSettings(url), ...kitSequence })
    assert.equal(await provider.check!(never), null)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.createContact(contactOf('refused@example.com'), false, never)
    for (const contact of [ada, { ...ada, providerId: '1' }]) {
      assert.deepEqual(await provider.automation!.deliver(eventOf(contact), never), { is: 'delivered' })
    }
  })
  assert.equal(exchanges.length, 10)
  for (const [asked, said] of exchanges) assertDocumented(kitCalls, asked, said)
})

test('a creation looks for the address in every state, then sends it with the first name', async t => {
  const { server, provider } = await started(t)
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'created', providerId: '1' })
  const [find, create] = server.asked
  assert.deepEqual([find!.path, find!.query], ['/v4/subscribers', { email_address: 'ada@example.com', status: 'all' }])
  assert.equal(find!.headers['x-kit-api-key'], kitSettings('').KIT_API_KEY)
  assert.deepEqual(sent(create!), ['POST', '/v4/subscribers', { email_address: 'ada@example.com', first_name: 'Ada' }])
})

test('who unsubscribed is known, with the id, and stays so', async t => {
  const { fake, server, provider } = await started(t)
  fake.had('ada@example.com')
  const creation = await provider.createContact(ada, false, never)
  assert.deepEqual(creation, { is: 'existing', providerId: '1', ours: false })
  assert.equal(server.asked.length, 1)
})

test('a list that ignores the filter makes nobody known', async t => {
  const fake = kitFake()
  fake.had('somebody@example.com')
  const server = await startVendor(t, asked => {
    const query = { ...asked.query, email_address: 'somebody@example.com' }
    return fake.answer({ ...asked, query })
  })
  const provider = await opened(t, kit, kitSettings(server.url))
  assert.equal((await provider.createContact(ada, false, never)).is, 'created')
})

test('the tag, the sequence or both start the automation, the tag first', async t => {
  const event = eventOf({ ...ada, providerId: '1' })
  const tag = ['POST', '/v4/tags/175/subscribers/1', {}]
  const sequence = ['POST', '/v4/sequences/301/subscribers/1', {}]
  for (const [change, expected] of [
    [{}, [tag]],
    [{ KIT_TAG_ID: '', ...kitSequence }, [sequence]],
    [kitSequence, [tag, sequence]],
  ] as const) {
    const { fake, server, provider } = await started(t, change)
    await provider.createContact(ada, false, never)
    for (const _ of [1, 2, 3]) assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    const once = server.asked.slice(2, 2 + expected.length)
    assert.deepEqual(once.map(sent), expected)
    assert.equal(fake.starts('ada@example.com'), expected.length)
  }
})

test('without a tag and a sequence there is no automation', async t => {
  const { provider } = await started(t, { KIT_TAG_ID: '' })
  assert.equal(provider.automation, null)
})

test('what one step had already done is not done twice when the other failed', async t => {
  const { fake, server, provider } = await started(t, kitSequence)
  await provider.createContact(ada, false, never)
  const event = eventOf({ ...ada, providerId: '1' })
  server.next('slow', '500 before')
  assert.equal((await provider.automation!.deliver(event, never)).is, 'unclear')
  assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
  assert.equal(fake.starts('ada@example.com'), 2)
})

test('a tag or a subscriber that is not there is our mistake; an inactive sequence refuses', async t => {
  for (const change of [{ KIT_TAG_ID: '176' }, kitInactiveSequence, {}]) {
    const { provider } = await started(t, change)
    if (Object.keys(change).length > 0) await provider.createContact(ada, false, never)
    const told = await provider.automation!.deliver(eventOf({ ...ada, providerId: '1' }), never)
    const is = change === kitInactiveSequence ? 'refused' : 'misconfigured'
    assert.equal(told.is, is, JSON.stringify(change))
  }
})

test('a 429, which is plain text and does not say how long, asks for a minute', async t => {
  const headers = { 'content-type': 'text/plain' }
  const server = await startVendor(t, () => ({ status: 429, body: 'Retry later', headers }))
  const provider = await opened(t, kit, kitSettings(server.url))
  const first = await provider.createContact(ada, false, never)
  assert.ok(first.is === 'unreached')
  assert.equal(first.retryAfter, 60_000)
})

const subscriber = { id: 7, first_name: null, email_address: 'ada@example.com', state: 'active', fields: {} }
const old = { ...subscriber, created_at: '2023-02-17T11:43:55Z' }
const young = { ...subscriber, created_at: new Date().toISOString() }

const answers: readonly (readonly [string, Said, object])[] = [
  ['202', { status: 202, body: { subscriber: young } }, { is: 'created', providerId: '7' }],
  ['200, for one that was added since', { status: 200, body: { subscriber: old } }, { is: 'existing', ours: false }],
  ['200, for one of ours', { status: 200, body: { subscriber: young } }, { is: 'existing', ours: true }],
  ['200 without a subscriber', { status: 200, body: {} }, { is: 'unclear' }],
  ['201 without an id', { status: 201, body: { subscriber: {} } }, { is: 'unclear' }],
  ['401', { status: 401, body: { errors: ['The access token is invalid'] } }, { is: 'misconfigured' }],
  ['404', { status: 404, body: { errors: ['Not Found'] } }, { is: 'misconfigured' }],
  ['422 about the address', { status: 422, body: { errors: ['Email address is invalid'] } }, { is: 'refused' }],
  ['422 about something else', { status: 422, body: { errors: ['State is invalid'] } }, { is: 'misconfigured' }],
]

for (const [what, said, expected] of answers) {
  test(`a creation that is answered with ${what} is taken for what it is`, async t => {
    const fake = kitFake()
    const server = await startVendor(t, asked => (asked.method === 'POST' ? said : fake.answer(asked)))
    const provider = await opened(t, kit, kitSettings(server.url))
    const creation = await provider.createContact(ada, true, never)
    assert.partialDeepStrictEqual(creation, expected)
  })
}

test('a 2xx that is not as documented is neither a good key nor a start of the automation', async t => {
  for (const body of [{}, '<html>Welcome</html>']) {
    const server = await startVendor(t, () => ({ status: 200, body }))
    const provider = await opened(t, kit, kitSettings(server.url))
    assert.equal((await provider.check!(never))?.is, 'unreached')
    assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, 'unclear')
  }
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { contactOf, eventOf, opened, providerContract, SHORT } from '../contracts/provider.ts'
import { type Asked, misbehaviours, type Said, startVendor } from '../harness/vendor.ts'
import { assertDocumented, exchanged } from '../harness/wire.ts'
import { kitCalls } from './kit.contract.ts'
import {
  kitFake,
  kitFields,
  kitFormWithout,
  kitInactiveSequence,
  kitJoined,
  kitReferrer,
  kitSequence,
  kitSettings,
} from './kit.fake.ts'
import { callsOf, starting } from './started.ts'

const kit = { vendor: 'kit' } as const
const never = new AbortController().signal
const ada = contactOf('ada@example.com')

providerContract({
  vendor: 'kit',
  settings: kitSettings,
  wrongKey: { KIT_API_KEY: 'kit_another-key' },
  fake: kitFake,
  refused: 'refused@example.com',
  joining: { settings: kitJoined, members: ['places'] },
})

const started = starting('kit', kitFake, kitSettings)

const sent = ({ method, path, json }: Asked) => [method, path, json]

test('requests and answers are those of the contract that the vendor publishes', async t => {
  const exchanges = await exchanged(t, kitFake().answer, async url => {
    const all = { ...kitSequence, ...kitJoined, ...kitFields, PROVIDER_EXISTING: 'join' }
    const open = () => opened(t, kit, { ...kitSettings(url), ...all })
    const provider = await open()
    assert.equal(await provider.check(never), null)
    for (const doubt of [false, true, false]) await provider.createContact(ada, doubt, never)
    await provider.createContact(contactOf('refused@example.com'), false, never)
    // Its pace leaves so many calls to visitors that a start would wait.
    const { automation } = await open()
    for (const contact of [ada, { ...ada, providerId: '1' }]) {
      assert.deepEqual(await automation!.deliver(eventOf(contact), never), { is: 'delivered' })
    }
  })
  assert.equal(exchanges.length, 7 + 5 + 4 + 4 + 1 + 1 + 4)
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

test('the form is told the page, with the source beside its own query; without it if Kit refuses that', async t => {
  const form = { ...kitFormWithout, ...kitReferrer }
  const contact = { ...ada, source: { utm_source: 'news letter', ref: 'ada' } }
  const referrers = async (one: typeof ada, refuses = '') => {
    const { server, provider } = await started(t, form, ({ json }) =>
      json?.referrer?.includes(refuses || 'nothing') ? { status: 422, body: { errors: ['No'] } } : undefined,
    )
    const creation = await provider.createContact(one, false, never)
    return [creation.is, ...server.asked.slice(2).map(({ json }) => json.referrer)]
  }
  const page = 'https://example.com/launch?plan=early'
  const full = `${page}&utm_source=news+letter&ref=ada`
  assert.deepEqual(await referrers(ada), ['created', page])
  assert.deepEqual(await referrers(contact), ['created', full])
  assert.deepEqual(await referrers(contact, 'news'), ['created', full, page])
  assert.deepEqual(await referrers(ada, 'launch'), ['misconfigured', page])
})

test('the rest of the name and constants go into custom fields', async t => {
  const { server, provider } = await started(t, kitFields)
  await provider.createContact(ada, false, never)
  await provider.createContact(contactOf('plato@example.com', { name: 'Plato' }), false, never)
  const bodies = server.asked.filter(({ method }) => method === 'POST').map(({ json }) => json)
  assert.deepEqual(bodies, [
    {
      email_address: 'ada@example.com',
      first_name: 'Ada',
      fields: { source: 'landing page', last_name: 'King Lovelace' },
    },
    { email_address: 'plato@example.com', first_name: 'Plato', fields: { source: 'landing page' } },
  ])
})

test('a field for the rest of the name is not sent for a name without a rest', async t => {
  const { server, provider } = await started(t, { KIT_LAST_NAME_FIELD: 'last_name' })
  await provider.createContact(contactOf('plato@example.com', { name: 'Plato' }), false, never)
  assert.deepEqual(Object.keys(server.asked[1]!.json), ['email_address', 'first_name'])
})

test('a custom field that is not there is our mistake', async t => {
  const { fake, provider } = await started(t, { KIT_FIELDS: 'sauce=landing page' })
  assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
  assert.equal(fake.count('ada@example.com'), 0)
})

test('a new contact gets the tags, then the form, before it is created for us', async t => {
  const { fake, server, provider } = await started(t, kitJoined)
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'created', providerId: '1' })
  assert.deepEqual(callsOf(server).slice(1), [
    'POST /v4/subscribers',
    'POST /v4/tags/181/subscribers/1',
    'POST /v4/tags/182/subscribers/1',
    'POST /v4/forms/217/subscribers/1',
  ])
  assert.equal(fake.joined!('ada@example.com'), true)
  assert.equal(fake.starts('ada@example.com'), 0)
})

test('what our own pace keeps back after a creation leaves doubt, and says nothing about Kit', async t => {
  const { fake, provider } = await started(t, { KIT_TAG_IDS: '181,182' })
  fake.had('old@example.com')
  const call = () => provider.createContact(contactOf('old@example.com'), false, never)
  // Of 120 calls a minute, three are left for a signup that takes four.
  await Promise.all(Array.from({ length: 117 }, call))
  const creation = await provider.createContact(ada, false, never)
  assert.partialDeepStrictEqual(creation, { is: 'unclear', notSent: true })
  assert.equal(fake.count('ada@example.com'), 1)
})

test('a form makes a new contact active, or asks it to confirm first', async t => {
  for (const [form, state] of [
    [kitFormWithout, 'active'],
    [kitJoined, 'inactive'],
  ] as const) {
    const { fake, server, provider } = await started(t, form)
    await provider.createContact(ada, false, never)
    assert.equal(server.asked[1]!.json.state, 'inactive')
    assert.partialDeepStrictEqual(fake.kept('ada@example.com'), { state })
  }
})

describe('what a new contact was kept from is made up for, and it stays new, after', { concurrency: true }, () => {
  for (const what of [...misbehaviours, '403 of unknown wording', '422 of unknown wording'] as const) {
    test(`"${what}"`, async t => {
      for (const done of [1, 3]) {
        const { fake, server, provider } = await started(t, kitJoined)
        server.next(...Array.from({ length: 1 + done }, () => 'slow' as const), what)
        const leave = what.startsWith('hang') ? AbortSignal.timeout(SHORT) : never
        const first = await provider.createContact(ada, false, leave)
        if (what === 'slow') {
          assert.equal(first.is, 'created')
          continue
        }
        assert.ok(first.is === 'unclear' || (first.is === 'misconfigured' && first.tookEffect), JSON.stringify(first))
        const later = await opened(t, kit, { ...kitSettings(server.url), ...kitJoined })
        const second = await later.createContact(ada, true, never)
        assert.deepEqual(second, { is: 'existing', providerId: '1', ours: true })
        assert.equal(fake.joined!('ada@example.com'), true)
        assert.deepEqual([fake.count('ada@example.com'), fake.starts('ada@example.com')], [1, 0])
      }
    })
  }
})

test('who was there before does not get the tags and the form, in doubt either', async t => {
  const { fake, provider } = await started(t, kitJoined)
  fake.had('ada@example.com')
  for (const doubt of [false, true]) {
    assert.deepEqual(await provider.createContact(ada, doubt, never), { is: 'existing', providerId: '1', ours: false })
  }
  assert.equal(fake.joined!('ada@example.com'), false)
})

test('the check names the tag, the sequence, the form or the field that is not there', async t => {
  for (const [change, why] of [
    [{ KIT_TAG_ID: '176' }, /tag 176 of KIT_TAG_ID:/],
    [{ KIT_TAG_IDS: '181,176' }, /tag 176 of KIT_TAG_IDS:/],
    [{ KIT_SEQUENCE_ID: '176' }, /sequence 176 of KIT_SEQUENCE_ID:/],
    [{ KIT_FORM_ID: '176' }, /form 176 of KIT_FORM_ID:/],
    [{ KIT_LAST_NAME_FIELD: 'surname' }, /there is no surname$/],
    [{ KIT_FIELDS: 'sauce=landing page,source=x,age=7' }, /there is no sauce, age$/],
  ] as const) {
    const { server, provider } = await started(t, change)
    const failure = await provider.check(never)
    assert.ok(failure?.is === 'misconfigured')
    assert.match(failure.why, why)
    assert.ok(server.asked.every(({ method }) => method === 'GET'))
  }
})

test('the check passes where all of it is there', async t => {
  const { server, provider } = await started(t, { ...kitSequence, ...kitJoined, ...kitFields })
  assert.equal(await provider.check(never), null)
  assert.equal(server.asked.length, 7)
})

test('settings that contradict each other are refused', async () => {
  for (const [change, mistake] of [
    [{ KIT_TAG_IDS: '181,175' }, /^KIT_TAG_IDS must not have the tag of KIT_TAG_ID/],
    [{ KIT_LAST_NAME_FIELD: 'source', KIT_FIELDS: 'source=x' }, /^KIT_FIELDS must not have the field/],
    [{ KIT_FIELDS: 'source=x,source=y' }, /^KIT_FIELDS must be a list/],
  ] as const) {
    const result = await readConfig({ PROVIDER: 'kit', ...kitSettings('http://127.0.0.1'), ...change })
    assert.ok('mistakes' in result)
    assert.match(result.mistakes.join(), mistake)
  }
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
  [
    '422 about the address and more',
    { status: 422, body: { errors: ['Email address is invalid', 'State is invalid'] } },
    { is: 'misconfigured' },
  ],
  ['422 about something else', { status: 422, body: { errors: ['State is invalid'] } }, { is: 'misconfigured' }],
  [
    '422 about a mail',
    { status: 422, body: { errors: ['The email of the form is invalid'] } },
    { is: 'misconfigured' },
  ],
  ['422 that says nothing', { status: 422, body: { errors: [] } }, { is: 'misconfigured' }],
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
    assert.equal((await provider.check(never))?.is, 'unreached')
    assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, 'unclear')
  }
})

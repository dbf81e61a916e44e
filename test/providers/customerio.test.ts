import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { APIClient, IdentifierType, TrackClient } from 'customerio-node'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { startVendor } from '../harness/vendor.ts'
import { assertDocumented, assertSameWire, exchanged, recorded } from '../harness/wire.ts'
import { customerioCalls } from './customerio.contract.ts'
import { API_KEY, APP_KEY, customerioFake, customerioSettings, SITE_ID } from './customerio.fake.ts'
import { starting } from './started.ts'

const vendor = 'customerio'
const never = new AbortController().signal
const ada = contactOf('ada+1@example.com', { createdAt: new Date('2026-02-01T12:00:00.900Z') })
const withoutAppKey = { CUSTOMERIO_APP_KEY: '' }

providerContract({
  vendor,
  settings: customerioSettings,
  wrongKey: { CUSTOMERIO_API_KEY: 'another-key' },
  wrongSetting: { CUSTOMERIO_APP_KEY: 'another-key' },
  fake: customerioFake,
  tellsId: false,
  // Success is an empty object: there is no value in it that could have a wrong type.
  exceptions: { 'wrong types': ['created'] },
})

const started = starting('customerio', customerioFake, customerioSettings)

test("our requests are those of the vendor's own client, and of its documents", async t => {
  const said = await exchanged(t, customerioFake().answer, async url => {
    const provider = await opened(t, { vendor }, customerioSettings(url))
    await provider.check!(never)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.automation!.deliver(eventOf(ada), never)
  })
  const theirs = await recorded(t, customerioFake().answer, async url => {
    const track = new TrackClient(SITE_ID, API_KEY, { url: `${url}/api/v1` })
    const app = new APIClient(APP_KEY, { url: `${url}/v1` })
    const id = 'ada+1@example.com'
    await track.getAccountRegion()
    await app.getCustomersByEmail('nobody@example.com')
    await app.getCustomersByEmail(id)
    await track.identify(id, { email: id, first_name: 'Ada', last_name: 'King Lovelace', created_at: 1_769_947_200 })
    await app.getCustomersByEmail(id)
    await app.getAttributes('a3000001', IdentifierType.CioId)
    const event = { name: 'waitlist.joined', id: '01K0EMYF00FH79T2HZ3GNMTQKF', data: { name: 'Ada King Lovelace' } }
    await track.track(id, event)
  })
  const ours = said.map(([asked]) => asked)
  assertSameWire(ours, theirs, ['authorization'])
  for (const [asked, one] of said) assertDocumented(customerioCalls, asked, one)
})

test('the id of an event is a ULID of the same 128 bits, and tells the time of the signup', async t => {
  const { server, provider } = await started(t)
  await provider.automation!.deliver(eventOf(ada), never)
  const { id } = server.asked[0]!.json as { id: string }
  const bits = [...id].reduce((all, one) => all * 32n + BigInt('0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(one)), 0n)
  assert.equal(bits.toString(16).padStart(32, '0'), ada.id.replaceAll('-', ''))
})

test('any address may be in a path and in a query', async t => {
  const { server, provider } = await started(t)
  const email = 'a%41?b#c&d+e@example.com'
  await provider.createContact(contactOf(email), false, never)
  await provider.automation!.deliver(eventOf(contactOf(email)), never)
  const path = `/api/v1/customers/${email}`
  assert.deepEqual(
    server.asked.map(({ path, query }) => [path, query]),
    [
      ['/v1/customers', { email }],
      [path, {}],
      [`${path}/events`, {}],
    ],
  )
})

test('an event has no time of its own: an old one would start no campaign', async t => {
  const { server, provider } = await started(t)
  await provider.automation!.deliver({ ...eventOf(ada), at: new Date('2020-01-01') }, never)
  assert.deepEqual(Object.keys(server.asked[0]!.json), ['name', 'id', 'data'])
})

describe('with the key of the App API', () => {
  test('an address is looked up, and somebody who exists is not touched', async t => {
    const { fake, server, provider } = await started(t)
    fake.had('ada+1@example.com')
    const creation = await provider.createContact(ada, false, never)
    assert.deepEqual(creation, { is: 'existing', providerId: 'a3000001' })
    assert.deepEqual(
      server.asked.map(({ method }) => method),
      ['GET'],
    )
  })

  test('in doubt, somebody who has the second of the signup is ours', async t => {
    const { fake, server, provider } = await started(t)
    await provider.createContact(ada, false, never)
    const ours = await provider.createContact(ada, true, never)
    assert.deepEqual(ours, { is: 'existing', providerId: 'a3000001', ours: true })
    const later = { ...ada, createdAt: new Date('2026-02-01T12:00:01Z') }
    assert.deepEqual(await provider.createContact(later, true, never), { ...ours, ours: false })

    fake.had('old@example.com')
    const old = await provider.createContact(contactOf('old@example.com'), true, never)
    assert.deepEqual(old, { is: 'existing', providerId: 'a3000002', ours: false })
    server.next('slow', '500 before')
    assert.equal((await provider.createContact(ada, true, never)).is, 'unreached')
  })

  for (const body of [{}, { results: null }, { results: {} }, { results: [{}] }, []]) {
    test(`a lookup that says ${JSON.stringify(body)} makes nobody new`, async t => {
      const server = await startVendor(t, () => ({ status: 200, body }))
      const provider = await opened(t, { vendor }, customerioSettings(server.url))
      assert.equal((await provider.createContact(ada, false, never)).is, 'unreached')
      assert.equal(server.asked.length, 1)
    })
  }

  test('a lookup that fails adds nobody', async t => {
    const { fake, server, provider } = await started(t)
    for (const [what, is] of [
      ['500 before', 'unreached'],
      ['429 with Retry-After', 'unreached'],
    ] as const) {
      server.next(what)
      assert.equal((await provider.createContact(ada, false, never)).is, is)
    }
    assert.equal(fake.count(ada.email), 0)
  })

  test('the check tries both keys', async t => {
    const { provider } = await started(t, { CUSTOMERIO_APP_KEY: 'another-key' })
    const failure = await provider.check!(never)
    assert.ok(failure?.is === 'misconfigured' && failure.why.startsWith('find a person'), JSON.stringify(failure))
    const other = await started(t, { CUSTOMERIO_SITE_ID: 'another-site' })
    const second = await other.provider.check!(never)
    assert.ok(second?.is === 'misconfigured' && /Track API/.test(second.why), JSON.stringify(second))
  })
})

describe('without the key of the App API', () => {
  test('everybody is new, and nobody who exists is changed: the address alone is sent', async t => {
    const { fake, server, provider } = await started(t, withoutAppKey)
    fake.had('ada+1@example.com')
    const before = JSON.stringify(fake.kept('ada+1@example.com'))
    for (const doubt of [false, true]) {
      assert.deepEqual(await provider.createContact(ada, doubt, never), { is: 'created' })
    }
    assert.equal(JSON.stringify(fake.kept('ada+1@example.com')), before)
    assert.deepEqual(
      server.asked.map(({ json }) => json),
      [{ email: 'ada+1@example.com' }, { email: 'ada+1@example.com' }],
    )
  })

  test('the event has the name, which the person has not', async t => {
    const { server, provider } = await started(t, withoutAppKey)
    await provider.automation!.deliver(eventOf(ada), never)
    assert.deepEqual(server.asked[0]!.json.data, { name: 'Ada King Lovelace' })
  })

  test('the check tries the key of the Track API', async t => {
    const { server, provider } = await started(t, withoutAppKey)
    assert.equal(await provider.check!(never), null)
    assert.equal(server.asked.length, 1)
  })
})

describe('an answer', () => {
  const bad: [number, unknown, string, string?][] = [
    [401, { meta: { error: 'Unauthorized request' } }, 'misconfigured'],
    [400, { meta: { errors: ['Something.'] } }, 'misconfigured', 'refused'],
    [200, '', 'unclear'],
    [200, { error: 'odd' }, 'unclear'],
    [204, '', 'unclear'],
    [302, '', 'misconfigured'],
    [429, '', 'unreached'],
  ]
  for (const [status, body, is, told = is] of bad) {
    test(`of ${status} ${JSON.stringify(body)} is ${is} for a person, and ${told} for an event`, async t => {
      const server = await startVendor(t, () => ({ status, body }))
      const env = { ...customerioSettings(server.url), ...withoutAppKey }
      const [first, second] = [await opened(t, { vendor }, env), await opened(t, { vendor }, env)]
      assert.equal((await first.createContact(ada, false, never)).is, is)
      assert.equal((await second.automation!.deliver(eventOf(ada), never)).is, told)
    })
  }
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { APIClient, IdentifierType, PipelinesClient, TrackClient } from 'customerio-node'
import { readConfig } from '../../src/config/config.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, startVendor } from '../harness/vendor.ts'
import { assertDocumented, assertSameWire, exchanged, recorded } from '../harness/wire.ts'
import { customerioCalls } from './customerio.contract.ts'
import {
  API_KEY,
  APP_KEY,
  customerioDynamicSegment,
  customerioFake,
  customerioSegment,
  customerioSettings,
  pipelinesSettings,
  SITE_ID,
  WRITE_KEY,
} from './customerio.fake.ts'
import { callsOf, starting } from './started.ts'

const vendor = 'customerio'
const never = new AbortController().signal
const ada = contactOf('ada+1@example.com', { createdAt: new Date('2026-02-01T12:00:00.900Z') })
const withoutAppKey = { CUSTOMERIO_APP_KEY: '' }
const DAY = 86_400_000

const contract = {
  vendor,
  wrongKey: { CUSTOMERIO_API_KEY: 'another-key' },
  wrongLookupKey: { CUSTOMERIO_APP_KEY: 'another-key' },
  wrongSetting: { CUSTOMERIO_APP_KEY: 'another-key' },
  fake: customerioFake,
  tellsId: false,
  // Success is the status: the body says nothing.
  exceptions: {
    'truncated JSON': ['created'],
    'cut in the middle': ['created'],
    'huge body': ['created'],
    'wrong types': ['created'],
  },
} as const
const joining = { settings: customerioSegment, members: ['segments'] }

providerContract({ ...contract, settings: customerioSettings, joining })
providerContract({
  ...contract,
  api: 'Pipelines API',
  settings: pipelinesSettings,
  promises: { repeatable: DAY },
})

const started = starting('customerio', customerioFake, customerioSettings)
const piped = starting('customerio', customerioFake, pipelinesSettings)

test("our requests are those of the vendor's own client, and of its documents", async t => {
  const said = await exchanged(t, customerioFake().answer, async url => {
    const provider = await opened(t, { vendor }, customerioSettings(url))
    await provider.check(never)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.automation!.deliver(eventOf(ada), never)
    for (const is of ['removed', 'absent']) assert.equal((await provider.remove(ada.email, never)).is, is)
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
    await app.getCustomersByEmail(id)
    await track.destroy(id)
    await app.getCustomersByEmail(id)
  })
  const ours = said.map(([asked]) => asked)
  assertSameWire(ours, theirs, ['authorization'])
  for (const [asked, one] of said) assertDocumented(customerioCalls, asked, one)
})

test("with a segment and attributes, our requests are those of the vendor's own client, and of its documents", async t => {
  const more = { ...customerioSegment, CUSTOMERIO_ATTRIBUTES: 'source=landing page', PROVIDER_EXISTING: 'join' }
  const said = await exchanged(t, customerioFake().answer, async url => {
    const provider = await opened(t, { vendor }, { ...customerioSettings(url), ...more })
    await provider.check(never)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, false, never)
  })
  const theirs = await recorded(t, customerioFake().answer, async url => {
    const track = new TrackClient(SITE_ID, API_KEY, { url: `${url}/api/v1` })
    const app = new APIClient(APP_KEY, { url: `${url}/v1` })
    const id = 'ada+1@example.com'
    const names = { first_name: 'Ada', last_name: 'King Lovelace' }
    await track.getAccountRegion()
    await app.getCustomersByEmail('nobody@example.com')
    await app.getSegment(7)
    await app.getCustomersByEmail(id)
    await track.identify(id, { email: id, ...names, created_at: 1_769_947_200, source: 'landing page' })
    await track.addCustomersToSegment(7, [id], IdentifierType.Email)
    await app.getCustomersByEmail(id)
    await track.addCustomersToSegment(7, [id], IdentifierType.Email)
  })
  const ours = said.map(([asked]) => asked)
  assertSameWire(ours, theirs, ['authorization'])
  for (const [asked, one] of said) assertDocumented(customerioCalls, asked, one)
})

test("to the Pipelines API our messages are those of the vendor's own client, and of its document", async t => {
  const more = { ...withoutAppKey }
  const all = { CUSTOMERIO_ATTRIBUTES: 'source=landing page' }
  const said = await exchanged(t, customerioFake().answer, async url => {
    const first = await opened(t, { vendor }, { ...pipelinesSettings(url), ...more })
    await first.createContact(ada, false, never)
    await first.automation!.deliver(eventOf(ada), never)
    const second = await opened(t, { vendor }, { ...pipelinesSettings(url), ...all })
    await second.createContact(contactOf('b@example.com', { createdAt: ada.createdAt }), false, never)
    assert.deepEqual(await first.remove(ada.email, never), { is: 'removed' })
  })
  const theirs = await recorded(t, customerioFake().answer, async url => {
    const cdp = new PipelinesClient(WRITE_KEY, { url: `${url}/v1`, strictMode: true })
    const [a, b] = ['ada+1@example.com', 'b@example.com']
    const names = { first_name: 'Ada', last_name: 'King Lovelace' }
    await cdp.identify({ userId: a, traits: { email: a } })
    const properties = { name: 'Ada King Lovelace' }
    await cdp.track({ userId: a, event: 'waitlist.joined', messageId: '01K0EMYF00FH79T2HZ3GNMTQKF', properties })
    await cdp.identify({ userId: b, traits: { email: b, ...names, created_at: 1_769_947_200, source: 'landing page' } })
    await cdp.track({ userId: a, event: 'User Deleted' })
  })
  const ours = said.map(([asked]) => asked).filter(({ method }) => method === 'POST')
  // The client adds to every message where it comes from, when, and a random id where we choose none.
  const bare = theirs.map((asked, i): Asked => {
    const { context: _, timestamp: __, messageId, ...json } = asked.json
    return { ...asked, json: ours[i]!.json.messageId === undefined ? json : { ...json, messageId } }
  })
  assertSameWire(ours, bare, ['content-type', 'authorization', 'x-strict-mode'])
  for (const [asked, one] of said) assertDocumented(customerioCalls, asked, one)
})

describe('the Pipelines API', () => {
  test('is asked in strict mode, since it answers with 200 to a wrong key without it', async t => {
    const { fake, server, provider } = await piped(t, { CUSTOMERIO_API_KEY: 'another-key', ...withoutAppKey })
    assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
    assert.ok(server.asked.every(({ headers }) => headers['x-strict-mode'] === '1'))
    assert.equal(fake.count(ada.email), 0)
  })

  test('gives the person and the event the address as user id', async t => {
    const { fake, server, provider } = await piped(t)
    await provider.createContact(ada, false, never)
    await provider.automation!.deliver(eventOf(ada), never)
    assert.deepEqual(
      server.asked.slice(1).map(({ json }) => json.userId),
      [ada.email, ada.email],
    )
    assert.deepEqual([fake.count(ada.email), fake.starts(ada.email)], [1, 1])
  })

  test('is counted on to recognise a repetition for a day, since it is not documented for how long it does', async t => {
    const { provider } = await piped(t)
    assert.equal(provider.automation!.repeatable, DAY)
  })

  test('the check is a message about nobody, which tells a wrong key', async t => {
    const good = await piped(t, withoutAppKey)
    assert.equal(await good.provider.check(never), null)
    assert.deepEqual(callsOf(good.server), ['POST /v1/identify'])
    assert.deepEqual(good.server.asked[0]!.json, {})
    const wrong = await piped(t, { CUSTOMERIO_API_KEY: 'another-key' })
    const failure = await wrong.provider.check(never)
    assert.ok(failure?.is === 'misconfigured' && /Pipelines API key: answered with 401/.test(failure.why))
  })

  test('that accepts a message about nobody is not strict, and passes no check', async t => {
    const server = await startVendor(t, () => ({ status: 200, body: {} }))
    const provider = await opened(t, { vendor }, { ...pipelinesSettings(server.url), ...withoutAppKey })
    assert.equal((await provider.check(never))?.is, 'unreached')
  })
})

describe('with a segment', () => {
  test('a new person is added to it, and a failure is made up for', async t => {
    for (const what of ['500 before', 'reset after', '403 of unknown wording', '400 of unknown wording'] as const) {
      const { fake, server, provider } = await started(t, customerioSegment)
      server.next('slow', 'slow', what)
      const first = await provider.createContact(ada, false, never)
      assert.ok(first.is === 'unclear' || (first.is === 'misconfigured' && first.tookEffect), JSON.stringify(first))
      const second = await provider.createContact(ada, true, never)
      assert.deepEqual(second, { is: 'existing', providerId: 'a3000001', ours: true })
      assert.equal(fake.joined!(ada.email), true)
    }
  })

  test('who was there before is not added, in doubt either', async t => {
    const { fake, provider } = await started(t, customerioSegment)
    fake.had(ada.email)
    for (const doubt of [false, true]) {
      assert.equal((await provider.createContact(ada, doubt, never)).is, 'existing')
    }
    assert.equal(fake.joined!(ada.email), false)
  })

  test('without the key of the App API nobody is added, since everybody would be', async t => {
    const { fake, server, provider } = await started(t, { ...customerioSegment, ...withoutAppKey })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.equal(fake.joined!(ada.email), false)
    assert.equal(server.asked.length, 1)
  })

  test('the check tells one that is not there, and one that is not manual', async t => {
    for (const [change, why] of [
      [customerioSegment, null],
      [customerioDynamicSegment, /^look for the segment 8: it is not a manual one$/],
      [{ CUSTOMERIO_SEGMENT_ID: '9' }, /^look for the segment 9: answered with 404/],
    ] as const) {
      const { server, provider } = await started(t, change)
      const failure = await provider.check(never)
      if (why === null) assert.equal(failure, null)
      else assert.ok(failure?.is === 'misconfigured' && why.test(failure.why), JSON.stringify(failure))
      assert.ok(server.asked.every(({ method }) => method === 'GET'))
    }
  })
})

test('attributes are set on a new person alone', async t => {
  const attributes = { CUSTOMERIO_ATTRIBUTES: 'source=landing page,plan=early' }
  const { fake, provider } = await started(t, attributes)
  fake.had('old@example.com')
  for (const email of [ada.email, 'old@example.com']) await provider.createContact(contactOf(email), false, never)
  assert.partialDeepStrictEqual(fake.kept(ada.email), { source: 'landing page', plan: 'early' })
  assert.ok(!Object.hasOwn(fake.kept('old@example.com') as object, 'source'))
  const without = await started(t, { ...attributes, ...withoutAppKey })
  await without.provider.createContact(ada, false, never)
  assert.deepEqual(without.server.asked[0]!.json, { email: ada.email })
})

describe('settings', () => {
  const track = customerioSettings('http://127.0.0.1')
  const pipes = pipelinesSettings('http://127.0.0.1')
  const read = (env: Record<string, string>) => readConfig({ PROVIDER: vendor, ...env })
  const wrong: [Record<string, string>, RegExp][] = [
    [{ ...track, CUSTOMERIO_SITE_ID: '' }, /^CUSTOMERIO_SITE_ID is missing/],
    [{ ...track, CUSTOMERIO_API: 'pipelines' }, /^CUSTOMERIO_SITE_ID is of the Track API/],
    [{ ...pipes, ...customerioSegment }, /^CUSTOMERIO_SEGMENT_ID needs CUSTOMERIO_API=track/],
    [{ ...track, CUSTOMERIO_ATTRIBUTES: 'plan=a,email=b' }, /^CUSTOMERIO_ATTRIBUTES .*email is taken/],
    [{ ...track, CUSTOMERIO_API: 'app' }, /^CUSTOMERIO_API must be one of track, pipelines/],
  ]
  for (const [env, mistake] of wrong) {
    test(`that do not go together are refused: ${mistake.source}`, () => {
      const result = read(env)
      assert.ok('mistakes' in result)
      assert.match(result.mistakes.join(), mistake)
    })
  }

  test('that need the key of the App API have no effect without it, and say so', () => {
    const result = read({ ...track, ...withoutAppKey, ...customerioSegment, CUSTOMERIO_ATTRIBUTES: 'plan=a' })
    assert.ok('config' in result)
    for (const name of ['CUSTOMERIO_ATTRIBUTES', 'CUSTOMERIO_SEGMENT_ID']) {
      assert.ok(result.config.warnings.includes(`${name} has no effect without CUSTOMERIO_APP_KEY.`))
    }
  })
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
    const failure = await provider.check(never)
    assert.ok(failure?.is === 'misconfigured' && failure.why.startsWith('find a person'), JSON.stringify(failure))
    const other = await started(t, { CUSTOMERIO_SITE_ID: 'another-site' })
    const second = await other.provider.check(never)
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
    assert.equal(await provider.check(never), null)
    assert.equal(server.asked.length, 1)
  })
})

describe('an answer', () => {
  const bad: [number, unknown, string, string?][] = [
    [401, { meta: { error: 'Unauthorized request' } }, 'misconfigured'],
    [400, { meta: { errors: ['Something.'] } }, 'misconfigured', 'refused'],
    [200, '', 'created', 'delivered'],
    [200, { success: true }, 'created', 'delivered'],
    [204, '', 'created', 'delivered'],
    [302, '', 'misconfigured'],
    [429, '', 'unreached'],
  ]
  for (const [status, body, is, told = is] of bad) {
    test(`of ${status} ${JSON.stringify(body)} is ${is} for a person, and ${told} for an event`, async t => {
      const server = await startVendor(t, () => ({ status, body }))
      for (const settings of [customerioSettings, pipelinesSettings]) {
        const env = { ...settings(server.url), ...withoutAppKey }
        const [first, second] = [await opened(t, { vendor }, env), await opened(t, { vendor }, env)]
        assert.equal((await first.createContact(ada, false, never)).is, is)
        assert.equal((await second.automation!.deliver(eventOf(ada), never)).is, told)
      }
    })
  }
})

test('without the key of the App API a removal is one call, which says the same of somebody who is not there', async t => {
  for (const start of [started, piped]) {
    const { fake, server, provider } = await start(t, withoutAppKey)
    fake.had(ada.email)
    for (const left of [1, 2]) {
      assert.deepEqual(await provider.remove(ada.email, never), { is: 'removed' })
      assert.deepEqual([server.asked.length, fake.count(ada.email)], [left, 0])
    }
  }
})

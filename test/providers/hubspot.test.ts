import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from '@hubspot/api-client'
import { readConfig } from '../../src/config/config.ts'
import { convergence } from '../contracts/provider.convergence.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { type HubspotFake, hubspotError, hubspotFake, hubspotMore, hubspotSettings, notValid } from './hubspot.fake.ts'
import { callsOf, starting } from './started.ts'

providerContract({
  vendor: 'hubspot',
  settings: hubspotSettings,
  wrongKey: { HUBSPOT_TOKEN: 'another-token' },
  wrongSetting: { HUBSPOT_PROPERTY: 'no_property=1' },
  fake: hubspotFake,
  refused: 'refused@example.com',
  joining: { settings: { HUBSPOT_LIST_IDS: '7, 8' }, members: ['lists'] },
})

const fakes: HubspotFake[] = []

describe('HubSpot, with lists', { timeout: 180_000 }, () => {
  convergence({
    vendor: 'hubspot',
    settings: url => ({ ...hubspotSettings(url), ...hubspotMore }),
    wrongKey: {},
    fake() {
      const fake = hubspotFake()
      fakes.push(fake)
      return fake
    },
  })

  test('in the end who is new there is on both lists, and nobody else', () => {
    assert.ok(fakes.length > 0)
    for (const { joined } of fakes) {
      for (const name of ['a', 'b', 'c', 'd', 'e']) assert.equal(joined!(`${name}@example.com`), true)
      for (const name of ['old-1', 'old-2']) assert.equal(joined!(`${name}@example.com`), false)
    }
  })
})

const ada = contactOf('ada@example.com')
const event = eventOf(ada)
const never = new AbortController().signal

const started = starting('hubspot', hubspotFake, hubspotSettings)

/** The client knows the paths of v3; the same calls have other paths in dated versions. */
const dated = (path: string): string =>
  path
    .replace('/crm/v3/objects/', '/crm/objects/2026-09/')
    .replace(/^\/crm\/v3\/(lists|properties)\//, '/crm/$1/2026-09/')
    .replace('/events/v3/send', '/events/custom/2026-09/send')

describe('HubSpot', { timeout: 60_000 }, () => {
  test("our requests are those of the vendor's own client", async t => {
    const ours = await recorded(t, hubspotFake().answer, async url => {
      const provider = await opened(t, { vendor: 'hubspot' }, { ...hubspotSettings(url), ...hubspotMore })
      await provider.check(never)
      await provider.createContact(ada, false, never)
      await provider.createContact(ada, true, never)
      await provider.automation!.deliver(event, never)
      await provider.automation!.deliver({ ...event, contact: { ...ada, providerId: '1001' } }, never)
      for (const is of ['removed', 'absent']) assert.equal((await provider.remove(ada.email, never)).is, is)
    })

    const fake = hubspotFake()
    const answer = (asked: Asked) =>
      fake.answer({ ...asked, path: dated(asked.path), segments: dated(asked.path).split('/') })
    const theirs = await recorded(t, answer, async url => {
      const client = new Client({ accessToken: hubspotSettings('').HUBSPOT_TOKEN, basePath: url })
      const contacts = client.crm.contacts.basicApi
      const own = {
        waitlist: 'early access',
        lifecyclestage: 'subscriber',
        hs_legal_basis: 'Freely given consent from contact;Not applicable',
      }
      const properties = { ...own, email: 'ada@example.com', firstname: 'Ada', lastname: 'King Lovelace' }
      const sent = { eventName: 'pe1234_joined', occurredAt: event.at, properties: {}, uuid: ada.id }
      const join = async () => {
        for (const list of ['7', '8']) await client.crm.lists.membershipsApi.add(list, ['1001'])
      }
      await contacts.getPage(1, undefined, ['createdate'])
      for (const name of Object.keys(own)) await client.crm.properties.coreApi.getByName('contacts', name)
      for (const list of ['7', '8']) await client.crm.lists.listsApi.getById(list)
      await contacts.create({ properties })
      await join()
      await contacts.create({ properties }).catch(() => {})
      await contacts.getById('1001', ['createdate'])
      await join()
      await client.events.send.basicApi.send({ ...sent, email: 'ada@example.com' })
      await client.events.send.basicApi.send({ ...sent, objectId: '1001' })
      const find = () => contacts.getById('ada@example.com', ['email'], undefined, undefined, undefined, 'email')
      await find()
      await contacts.purge({ objectId: '1001' })
      await find().catch(() => {})
    })
    // The client leaves `archived=false` and `includeFilters=false`, which are the defaults, in the query.
    const plain = theirs.map(
      ({ query: { archived = 'false', includeFilters = 'false', ...query }, path, ...asked }) => {
        assert.deepEqual([archived, includeFilters], ['false', 'false'])
        return { ...asked, path: dated(path), query }
      },
    )
    assertSameWire(ours, plain)
  })

  test('what is unset is in no request', async t => {
    const { server, provider } = await started(t, { HUBSPOT_PROPERTY: '' })
    await provider.check(never)
    await provider.createContact(ada, false, never)
    assert.deepEqual(callsOf(server), ['GET /crm/objects/2026-09/contacts', 'POST /crm/objects/2026-09/contacts'])
    const properties = { email: 'ada@example.com', firstname: 'Ada', lastname: 'King Lovelace' }
    assert.deepEqual(server.asked[1]!.json, { properties })
  })

  test('a list that fails leaves doubt, however it failed, and the next attempt makes up for it', async t => {
    const unknown = { status: 200, body: { recordsIdsAdded: [], recordIdsMissing: ['1001'], recordIdsRemoved: [] } }
    const rows: [Said, string][] = [
      [{ status: 503 }, 'unclear'],
      [{ status: 500 }, 'unclear'],
      [{ status: 200, body: {} }, 'unclear'],
      // A contact that is not known to the lists yet.
      [unknown, 'unclear'],
      [hubspotError(404, 'OBJECT_NOT_FOUND', 'list not found'), 'misconfigured'],
      [hubspotError(403, 'MISSING_SCOPES', 'crm.lists.write'), 'misconfigured'],
    ]
    for (const [failed, is] of rows) {
      let failing = true
      const isSecond = ({ path }: Asked) => failing && path.includes('/8/memberships/')
      const said = (asked: Asked) => (isSecond(asked) ? failed : undefined)
      const { fake, provider } = await started(t, hubspotMore, said)
      const first = await provider.createContact(ada, false, never)
      assert.equal(first.is, is, JSON.stringify(failed))
      assert.equal(first.is === 'misconfigured' && first.tookEffect, is === 'misconfigured')
      assert.equal(fake.joined!(ada.email), false)
      failing = false
      const second = await provider.createContact(ada, true, never)
      assert.deepEqual(second, { is: 'existing', providerId: '1001', ours: true })
      assert.equal(fake.joined!(ada.email), true)
    }
  })

  test('a conflict without the id: who is known joins the lists by the address', async t => {
    const vague = hubspotError(409, 'CONFLICT', 'Contact already exists.')
    const change = { HUBSPOT_LIST_IDS: '7, 8', PROVIDER_EXISTING: 'join' }
    const { fake, provider } = await started(t, change, ({ method }) => (method === 'POST' ? vague : undefined))
    fake.had('ada@example.com')
    assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
    assert.equal(fake.joined!('ada@example.com'), true)
  })

  test('a name that the account has a rule against is left out, and only that one', async t => {
    const { fake, server, provider } = await started(t, hubspotMore)
    const r2d2 = contactOf('r2d2@example.com', { name: 'R2-D2 Droid' })
    assert.equal((await provider.createContact(r2d2, false, never)).is, 'created')
    const { properties } = fake.kept('r2d2@example.com') as { properties: object }
    const { firstname, lastname } = properties as Record<string, string>
    assert.deepEqual([firstname, lastname], [undefined, 'Droid'])
    assert.equal(server.asked.filter(({ method }) => method === 'POST').length, 2)
    // A rule that cannot be met so is asked for once, and is for the owner to mend.
    const strict = notValid({ name: 'lastname', error: 'REQUIRED' })
    const { server: other, provider: refused } = await started(t, {}, () => strict)
    assert.equal((await refused.createContact(r2d2, false, never)).is, 'misconfigured')
    assert.equal(other.asked.length, 2)
    // With something else wrong it would not help.
    const both = notValid({ name: 'lastname', error: 'INVALID_ALPHA' }, { name: 'waitlist', error: 'INVALID_OPTION' })
    const third = await started(t, {}, () => both)
    assert.equal((await third.provider.createContact(r2d2, false, never)).is, 'misconfigured')
    assert.equal(third.server.asked.length, 1)
  })

  test('the check finds a property, an option and a list that are not there', async t => {
    const rows: [Record<string, string>, RegExp][] = [
      [{ HUBSPOT_PROPERTY: 'no_property=1' }, /property no_property: answered with 404/],
      [{ HUBSPOT_LIFECYCLE_STAGE: 'fan' }, /property lifecyclestage: .* none of its options/],
      [{ HUBSPOT_LEGAL_BASIS: 'Not applicable;Because' }, /property hs_legal_basis: .* none of its options/],
      [{ HUBSPOT_LIST_IDS: '7, 77' }, /list 77: answered with 404/],
      [{ HUBSPOT_LIST_IDS: '9' }, /list 9: it is no static list of contacts/],
    ]
    for (const [change, why] of rows) {
      const { server, provider } = await started(t, { ...hubspotMore, ...change })
      const failure = await provider.check(never)
      assert.equal(failure?.is, 'misconfigured')
      assert.match(failure.why, why)
      assert.ok(server.asked.every(({ method }) => method === 'GET'))
      // A signup says so, too, and stays.
      const creation = await provider.createContact(ada, false, never)
      assert.equal(creation.is, 'misconfigured', JSON.stringify(change))
    }
    const { provider } = await started(t, hubspotMore)
    assert.equal(await provider.check(never), null)
  })

  test('a property is set with the creation; without one nothing but name and address is sent', async t => {
    const { fake, provider } = await started(t)
    await provider.createContact(ada, false, never)
    const name = { firstname: 'Ada', lastname: 'King Lovelace' }
    const { properties } = fake.kept('ada@example.com') as { properties: object }
    assert.deepEqual(properties, { waitlist: 'early access', email: 'ada@example.com', ...name })

    const without = await started(t, { HUBSPOT_PROPERTY: '' })
    await without.provider.createContact(contactOf('bob@example.com', { name: 'Bob' }), false, never)
    const sent = { properties: { email: 'bob@example.com', firstname: 'Bob' } }
    assert.deepEqual(without.server.asked[0]!.json, sent)
  })

  test('what a visitor types cannot be the property', async () => {
    for (const name of ['email', 'firstname', 'lastname']) {
      const settings = { ...hubspotSettings('https://api.example.com'), HUBSPOT_PROPERTY: `${name}=x` }
      const result = await readConfig({ PROVIDER: 'hubspot', ...settings })
      assert.ok('mistakes' in result)
      assert.match(result.mistakes.join(), new RegExp(`^HUBSPOT_PROPERTY .*${name}`))
    }
  })

  test('a property that has a setting of its own is not set twice', async () => {
    const settings = { ...hubspotSettings('https://api.example.com'), ...hubspotMore }
    for (const name of ['lifecyclestage', 'hs_legal_basis']) {
      const result = await readConfig({ PROVIDER: 'hubspot', ...settings, HUBSPOT_PROPERTY: `${name}=lead` })
      assert.ok('mistakes' in result)
      assert.match(result.mistakes.join(), new RegExp(`^HUBSPOT_PROPERTY must not be ${name}`))
    }
  })

  test('without an event there is no automation: a workflow starts by itself', async t => {
    const { provider } = await started(t, { HUBSPOT_EVENT: '' })
    assert.equal(provider.automation, null)
  })

  test('a known address costs one call, which tells its id', async t => {
    const { fake, server, provider } = await started(t)
    fake.had('ada@example.com')
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing', providerId: '1001' })
    assert.deepEqual(callsOf(server), ['POST /crm/objects/2026-09/contacts'])
  })

  test('a conflict without the id is looked up by the address when there is doubt', async t => {
    const vague = hubspotError(409, 'CONFLICT', 'Contact already exists.')
    const { fake, server, provider } = await started(t, {}, ({ method }) => (method === 'POST' ? vague : undefined))
    fake.had('ada@example.com')
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing', providerId: undefined })
    assert.equal(server.asked.length, 1)
    const doubted = await provider.createContact(ada, true, never)
    assert.deepEqual(doubted, { is: 'existing', providerId: '1001', ours: false })
    assert.deepEqual(server.asked.at(-1)!.query, { properties: 'createdate', idProperty: 'email' })
  })

  test('a contact that cannot be looked at is returned as it failed', async t => {
    const rows: [Said, string][] = [
      [{ status: 500 }, 'unreached'],
      [{ status: 503 }, 'unreached'],
      [hubspotError(403, 'MISSING_SCOPES', 'This app does not have …'), 'misconfigured'],
      [hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found'), 'misconfigured'],
      [{ status: 200, body: {} }, 'unreached'],
      [{ status: 200, body: { id: '1001', createdAt: 'long ago' } }, 'unreached'],
    ]
    for (const [said, is] of rows) {
      const { fake, provider } = await started(t, {}, ({ method }) => (method === 'GET' ? said : undefined))
      fake.had('ada@example.com')
      assert.equal((await provider.createContact(ada, true, never)).is, is, JSON.stringify(said))
    }
  })

  test('400, 401, 403, 404, 409, 429: what each is taken for', async t => {
    const invalid = { name: 'email', error: 'INVALID_EMAIL' }
    const noProperty = { name: 'waitlist', error: 'PROPERTY_DOESNT_EXIST' }
    const elsewhere = { name: 'other_email', error: 'INVALID_EMAIL' }
    const ruled = { name: 'email', error: 'INVALID_ALPHA' }
    const name = { name: 'firstname', error: 'INVALID_ALPHA' }
    const listed = (code: string, propertyName: string) =>
      hubspotError(400, 'VALIDATION_ERROR', 'Not valid.', {
        errors: [{ message: 'Not valid.', code, context: { propertyName: [propertyName] } }],
      })
    const rows: [Said, string, string][] = [
      [notValid(invalid), 'refused', 'refused'],
      [notValid(noProperty, invalid), 'refused', 'refused'],
      [listed('INVALID_EMAIL', 'email'), 'refused', 'refused'],
      [listed('INVALID_EMAIL', 'other_email'), 'misconfigured', 'refused'],
      [listed('REQUIRED', 'email'), 'misconfigured', 'refused'],
      [notValid(ruled), 'misconfigured', 'refused'],
      [notValid(name, noProperty), 'misconfigured', 'refused'],
      [{ ...notValid(invalid), status: 403 }, 'misconfigured', 'misconfigured'],
      [notValid(noProperty), 'misconfigured', 'refused'],
      [notValid(elsewhere), 'misconfigured', 'refused'],
      [hubspotError(400, 'VALIDATION_ERROR', 'Invalid input JSON [line 1]'), 'misconfigured', 'refused'],
      [hubspotError(400, 'VALIDATION_ERROR', ''), 'misconfigured', 'refused'],
      [hubspotError(401, 'EXPIRED_AUTHENTICATION', 'expired'), 'misconfigured', 'misconfigured'],
      [hubspotError(403, 'MISSING_SCOPES', 'scopes'), 'misconfigured', 'misconfigured'],
      [hubspotError(404, 'OBJECT_NOT_FOUND', 'not found'), 'misconfigured', 'misconfigured'],
      // Not a known address; for an event it is the one that is there.
      [hubspotError(409, 'OTHER', 'Something else'), 'misconfigured', 'delivered'],
      [hubspotError(429, 'RATE_LIMITS', 'You have reached your secondly limit.'), 'unreached', 'unreached'],
      [{ status: 200, body: {} }, 'unclear', 'unclear'],
    ]
    for (const [said, creation, told] of rows) {
      const { provider } = await started(t, {}, () => said)
      assert.equal((await provider.automation!.deliver(event, never)).is, told, JSON.stringify(said))
      assert.equal((await provider.createContact(ada, false, never)).is, creation, JSON.stringify(said))
    }
  })

  test('the check finds a token that may not read contacts', async t => {
    const said = hubspotError(403, 'MISSING_SCOPES', 'This app does not have the scope crm.objects.contacts.read')
    const { provider } = await started(t, {}, ({ method }) => (method === 'GET' ? said : undefined))
    const failure = await provider.check(never)
    assert.ok(failure?.is === 'misconfigured')
    assert.match(failure.why, /crm\.objects\.contacts\.read/)
  })

  test('an event that HubSpot does not know is refused', async t => {
    const { provider } = await started(t, { HUBSPOT_EVENT: 'pe1234_other' })
    assert.equal((await provider.automation!.deliver(event, never)).is, 'refused')
  })
})

test('a contact that has the address as an additional one is left alone', async t => {
  const { fake, server, provider } = await started(t, {}, ({ method }) => {
    if (method !== 'GET') return undefined
    const properties = { email: 'other@example.com' }
    return { status: 200, body: { id: '1001', properties, createdAt: '', updatedAt: '', archived: false } }
  })
  fake.had('other@example.com')
  const said = await provider.remove(ada.email, never)
  assert.ok(said.is === 'by hand' && /another address$/.test(said.how), JSON.stringify(said))
  assert.equal(server.asked.length, 1)
})

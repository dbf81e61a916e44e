import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from '@hubspot/api-client'
import { readConfig } from '../../src/config.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import type { Said } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { hubspotError, hubspotFake, hubspotSettings, notValid } from './hubspot.fake.ts'
import { callsOf, starting } from './started.ts'

providerContract({
  vendor: 'hubspot',
  settings: hubspotSettings,
  wrongKey: { HUBSPOT_TOKEN: 'another-token' },
  wrongSetting: { HUBSPOT_PROPERTY: 'no_property=1' },
  fake: hubspotFake,
  refused: 'refused@example.com',
})

const ada = contactOf('ada@example.com')
const event = eventOf(ada)
const never = new AbortController().signal

const started = starting('hubspot', hubspotFake, hubspotSettings)

describe('HubSpot', { timeout: 60_000 }, () => {
  test("our requests are those of the vendor's own client", async t => {
    const ours = await recorded(t, hubspotFake().answer, async url => {
      const provider = await opened(t, { vendor: 'hubspot' }, hubspotSettings(url))
      await provider.check!(never)
      await provider.createContact(ada, false, never)
      await provider.createContact(ada, true, never)
      await provider.automation!.deliver(event, never)
      await provider.automation!.deliver({ ...event, contact: { ...ada, providerId: '1001' } }, never)
    })

    const theirs = await recorded(t, hubspotFake().answer, async url => {
      const client = new Client({ accessToken: hubspotSettings('').HUBSPOT_TOKEN, basePath: url })
      const contacts = client.crm.contacts.basicApi
      const own = { waitlist: 'early access' }
      const properties = { ...own, email: 'ada@example.com', firstname: 'Ada', lastname: 'King Lovelace' }
      const sent = { eventName: 'pe1234_joined', occurredAt: event.at, properties: {}, uuid: ada.id }
      await contacts.getPage(1, undefined, ['createdate'])
      await contacts.create({ properties })
      await contacts.create({ properties }).catch(() => {})
      await contacts.getById('1001', ['createdate'])
      await client.events.send.basicApi.send({ ...sent, email: 'ada@example.com' })
      await client.events.send.basicApi.send({ ...sent, objectId: '1001' })
    })
    // The client leaves `archived=false`, which is the default, in the query.
    const plain = theirs.map(({ query: { archived, ...query }, ...asked }) => {
      assert.ok(archived === undefined || archived === 'false')
      return { ...asked, query }
    })
    assertSameWire(ours, plain)
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

  test('what a visitor types cannot be the property', () => {
    for (const name of ['email', 'firstname', 'lastname']) {
      const settings = { ...hubspotSettings('https://api.example.com'), HUBSPOT_PROPERTY: `${name}=x` }
      const result = readConfig({ PROVIDER: 'hubspot', ...settings })
      assert.ok('mistakes' in result)
      assert.match(result.mistakes.join(), new RegExp(`^HUBSPOT_PROPERTY .*${name}`))
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
    assert.deepEqual(callsOf(server), ['POST /crm/v3/objects/contacts'])
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
    const rows: [Said, string, string][] = [
      [notValid(invalid), 'refused', 'refused'],
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
    const failure = await provider.check!(never)
    assert.ok(failure?.is === 'misconfigured')
    assert.match(failure.why, /crm\.objects\.contacts\.read/)
  })

  test('an event that HubSpot does not know is refused', async t => {
    const { provider } = await started(t, { HUBSPOT_EVENT: 'pe1234_other' })
    assert.equal((await provider.automation!.deliver(event, never)).is, 'refused')
  })
})

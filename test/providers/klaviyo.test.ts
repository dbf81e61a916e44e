import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiKeySession, DataPrivacyApi, EventsApi, ListsApi, ProfilesApi } from 'klaviyo-api'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { klaviyoError, klaviyoFake, klaviyoSettings } from './klaviyo.fake.ts'
import { callsOf, starting } from './started.ts'

providerContract({
  vendor: 'klaviyo',
  // With a list: klaviyo.list.test.ts.
  settings: url => ({ ...klaviyoSettings(url), KLAVIYO_LIST_ID: '' }),
  wrongKey: { KLAVIYO_API_KEY: 'another-key' },
  wrongSetting: { KLAVIYO_LIST_ID: 'NoList' },
  fake: klaviyoFake,
  refused: 'refused@example.com',
  joining: { settings: { KLAVIYO_LIST_ID: 'LiSt01' }, members: ['lists'] },
})

const ada = contactOf('ada@example.com')
const event = eventOf(ada)
const never = new AbortController().signal

const started = starting('klaviyo', klaviyoFake, klaviyoSettings)

describe('Klaviyo', { timeout: 60_000 }, () => {
  test("our requests are those of the vendor's own client", async t => {
    const ours = await recorded(t, klaviyoFake().answer, async url => {
      const provider = await opened(t, { vendor: 'klaviyo' }, klaviyoSettings(url))
      await provider.check(never)
      const creation = await provider.createContact(ada, false, never)
      assert.ok('providerId' in creation)
      await provider.createContact(ada, true, never)
      await provider.automation!.deliver(event, never)
      const { providerId } = creation
      await provider.automation!.deliver({ ...event, contact: { ...ada, providerId: providerId! } }, never)
      for (const is of ['removed', 'absent']) assert.equal((await provider.remove(ada.email, never)).is, is)
    })

    const theirs = await recorded(t, klaviyoFake().answer, async url => {
      const session = new ApiKeySession(klaviyoSettings('').KLAVIYO_API_KEY)
      const [profiles, lists, events] = [new ProfilesApi(session), new ListsApi(session), new EventsApi(session)]
      const privacy = new DataPrivacyApi(session)
      for (const api of [profiles, lists, events, privacy]) api.basePath = url
      const attributes = { email: 'ada@example.com', firstName: 'Ada', lastName: 'King Lovelace' }
      const create = () => profiles.createProfile({ data: { type: 'profile', attributes } })
      const join = (id: string) => lists.addProfilesToList('LiSt01', { data: [{ type: 'profile', id }] })
      const send = (profile: { id?: string; attributes: { email?: string } }) =>
        events.createEvent({
          data: {
            type: 'event',
            attributes: {
              properties: {},
              metric: { data: { type: 'metric', attributes: { name: 'waitlist.joined' } } },
              profile: { data: { type: 'profile', ...profile } },
              uniqueId: event.id,
            },
          },
        })
      await profiles.getProfiles({ fieldsProfile: ['created'], pageSize: 1 })
      await lists.getList('LiSt01', { fieldsList: ['name'] })
      const id = (await create()).body.data.id!
      await join(id)
      await create().catch(() => {})
      await profiles.getProfile(id, { fieldsProfile: ['created'] })
      await join(id)
      await send({ attributes: { email: 'ada@example.com' } })
      await send({ id, attributes: {} })
      const find = () => profiles.getProfiles({ filter: 'equals(email,"ada@example.com")', fieldsProfile: ['email'] })
      await find()
      const profile = { data: { type: 'profile', id, attributes: {} } } as const
      await privacy.requestProfileDeletion({ data: { type: 'data-privacy-deletion-job', attributes: { profile } } })
      await find()
    })
    assertSameWire(ours, theirs, ['authorization', 'revision', 'accept'])
    // By design: the reference says that bodies are application/vnd.api+json, the client says application/json.
    for (const { method, headers } of ours) {
      assert.equal(headers['content-type'], method === 'POST' ? 'application/vnd.api+json' : undefined)
    }
  })

  test('without a list one call is enough', async t => {
    const { server, provider } = await started(t, { KLAVIYO_LIST_ID: '' })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.deepEqual(callsOf(server), ['POST /api/profiles'])
  })

  test('the check finds a list that is not there, or that the key may not read', async t => {
    const { server, provider } = await started(t, { KLAVIYO_LIST_ID: 'NoList' })
    const missing = await provider.check(never)
    assert.ok(missing?.is === 'misconfigured')
    assert.match(missing.why, /^check the list: answered with 404/)
    assert.ok(server.asked.every(({ method }) => method === 'GET'))

    const forbidden = (asked: Asked) =>
      asked.path.startsWith('/api/lists/') ? klaviyoError(403, 'permission_denied') : undefined
    const other = await started(t, {}, forbidden)
    assert.equal((await other.provider.check(never))?.is, 'misconfigured')
  })

  test('429 with Retry-After: we are told for how long', async t => {
    const said = { ...klaviyoError(429, 'throttled'), headers: { 'retry-after': '20' } }
    const { provider } = await started(t, {}, () => said)
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'unreached')
    assert.equal(creation.retryAfter, 20_000)
  })

  test('a profile that cannot be looked at is returned as it failed', async t => {
    const noTime = { data: { type: 'profile', id: '01PROFILE1', attributes: { created: 'long ago' } } }
    const rows: [Said, string][] = [
      [{ status: 500 }, 'unreached'],
      [{ status: 503 }, 'unreached'],
      [klaviyoError(403, 'permission_denied'), 'misconfigured'],
      [{ status: 200, body: {} }, 'unreached'],
      [{ status: 200, body: noTime }, 'unreached'],
    ]
    for (const [said, is] of rows) {
      const { fake, provider } = await started(t, {}, ({ method }) => (method === 'GET' ? said : undefined))
      fake.had('ada@example.com')
      assert.equal((await provider.createContact(ada, true, never)).is, is, JSON.stringify(said))
    }
  })

  test('400, 401, 403, 404, 409, 410: what each is taken for', async t => {
    const rows: [Said, string, string][] = [
      [klaviyoError(400, 'invalid', '/data/attributes/email'), 'refused', 'refused'],
      [klaviyoError(400, 'invalid', '/data/attributes/first_name'), 'misconfigured', 'refused'],
      [klaviyoError(400, 'invalid'), 'misconfigured', 'refused'],
      [klaviyoError(401, 'not_authenticated'), 'misconfigured', 'misconfigured'],
      [klaviyoError(403, 'permission_denied'), 'misconfigured', 'misconfigured'],
      [klaviyoError(404, 'not_found'), 'misconfigured', 'misconfigured'],
      // A conflict that does not say with whom.
      [klaviyoError(409, 'conflict'), 'existing', 'misconfigured'],
      [klaviyoError(410, 'gone'), 'misconfigured', 'misconfigured'],
      [{ status: 200, body: {} }, 'unclear', 'unclear'],
    ]
    for (const [said, creation, told] of rows) {
      const { provider } = await started(t, {}, () => said)
      assert.equal((await provider.createContact(ada, false, never)).is, creation, JSON.stringify(said))
      assert.equal((await provider.automation!.deliver(event, never)).is, told, JSON.stringify(said))
      // A look that makes no sense has changed nothing.
      const checked = { unclear: 'unreached', refused: 'misconfigured' }[told] ?? told
      assert.equal((await provider.check(never))?.is, checked)
    }
  })

  test('the event goes to the profile by its id, and writes nothing into it', async t => {
    const { fake, provider } = await started(t)
    await provider.createContact(ada, false, never)
    const before = JSON.stringify(fake.kept('ada@example.com'))
    const told = await provider.automation!.deliver({ ...event, contact: { ...ada, providerId: '01PROFILE1' } }, never)
    assert.deepEqual(told, { is: 'delivered' })
    assert.equal(JSON.stringify(fake.kept('ada@example.com')), before)
    assert.equal(fake.starts('ada@example.com'), 1)
  })
})

test('a key that may not delete is told which scope it needs', async t => {
  const { fake, provider } = await started(t, {}, ({ path }) =>
    path.endsWith('/data-privacy-deletion-jobs') ? klaviyoError(403, 'permission_denied') : undefined,
  )
  fake.had(ada.email)
  const said = await provider.remove(ada.email, never)
  assert.ok(said.is === 'misconfigured' && said.why.endsWith('data-privacy:write'), JSON.stringify(said))
  assert.equal(fake.count(ada.email), 1)
})

test('every profile that has the address is deleted', async t => {
  const profile = (id: string, email: string) => ({ type: 'profile', id, attributes: { email }, links: { self: '/' } })
  const found = [profile('a', 'Ada@example.com'), profile('b', 'bob@example.com'), profile('c', ada.email)]
  const { server, provider } = await started(t, {}, ({ method }) =>
    method === 'GET' ? { status: 200, body: { data: found, links: {} } } : undefined,
  )
  assert.deepEqual(await provider.remove(ada.email, never), { is: 'removed' })
  const deleted = server.asked.filter(({ method }) => method === 'POST')
  assert.deepEqual(
    deleted.map(({ json }) => json.data.attributes.profile.data.id),
    ['a', 'c'],
  )
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiKeySession, DataPrivacyApi, EventsApi, ListsApi, ProfilesApi } from 'klaviyo-api'
import { convergence } from '../contracts/provider.convergence.ts'
import { within } from '../contracts/provider.sources.ts'
import { eventOf, providerContract } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { type KlaviyoFake, klaviyoError, klaviyoFake, klaviyoSettings } from './klaviyo.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable, waitAfter } from './table.ts'

const klaviyo = {
  vendor: 'klaviyo',
  // With a list a creation takes two calls, of which the contract knows by `joining`.
  settings: (url: string) => ({ ...klaviyoSettings(url), KLAVIYO_LIST_ID: '' }),
  wrongKey: { KLAVIYO_API_KEY: 'another-key' },
  wrongSetting: { KLAVIYO_LIST_ID: 'NoList' },
  fake: klaviyoFake,
  refused: 'refused@example.com',
  joining: {
    settings: { KLAVIYO_LIST_ID: 'LiSt01' },
    members: ['lists'],
    each: { setting: 'KLAVIYO_LIST_ID', path: /^\/api\/lists\/(\w+)\/relationships\/profiles$/ },
  },
  sources: [{ contact: within('data.attributes.properties'), event: within('data.attributes.properties') }],
  start: {
    path: /^\/api\/events$/,
    done: { status: 202 },
    id: ({ json }: Received) => json.data.attributes.unique_id,
  },
} as const
providerContract(klaviyo)

const { started, rows, answers, sameRequests } = vendorTable(klaviyo)
const list = { KLAVIYO_LIST_ID: 'LiSt01' }
const consent = { ...list, KLAVIYO_CONSENT: 'true' }
const ID = '01PROFILE1'
const known = { ...ada, providerId: ID }
const CREATE = 'POST /api/profiles'
const CREATE_SHOWN = `${CREATE}?additional-fields[profile]=subscriptions`
const JOB = 'POST /api/profile-subscription-bulk-create-jobs'
const headers = ['authorization', 'revision', 'accept']
const ours = { is: 'existing', providerId: ID, ours: true }
const isListCall = ({ path }: Received) => path.startsWith('/api/lists/')
const isJob = ({ path }: Received) => path.endsWith('-jobs')

function client(url: string) {
  const session = new ApiKeySession(klaviyoSettings('').KLAVIYO_API_KEY)
  const profiles = new ProfilesApi(session)
  const lists = new ListsApi(session)
  const events = new EventsApi(session)
  const privacy = new DataPrivacyApi(session)
  for (const api of [profiles, lists, events, privacy]) api.basePath = url
  return { profiles, lists, events, privacy }
}
const attributes = { email: ada.email, firstName: 'Ada', lastName: 'King Lovelace' }

sameRequests('with a list', {
  set: list,
  ours: [
    [check, null],
    [create(), { is: 'created', providerId: ID }],
    [createAgain(), ours],
    [start(), 'delivered'],
    [start(known), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  async theirs(url) {
    const { profiles, lists, events, privacy } = client(url)
    const create = () => profiles.createProfile({ data: { type: 'profile', attributes } })
    const join = () => lists.addProfilesToList('LiSt01', { data: [{ type: 'profile', id: ID }] })
    const find = () => profiles.getProfiles({ filter: `equals(email,"${ada.email}")`, fieldsProfile: ['email'] })
    const send = (profile: { id?: string; attributes: { email?: string } }) =>
      events.createEvent({
        data: {
          type: 'event',
          attributes: {
            properties: {},
            metric: { data: { type: 'metric', attributes: { name: 'waitlist.joined' } } },
            profile: { data: { type: 'profile', ...profile } },
            uniqueId: eventOf(ada).id,
          },
        },
      })
    await profiles.getProfiles({ fieldsProfile: ['created'], pageSize: 1 })
    await lists.getList('LiSt01', { fieldsList: ['name'] })
    await create()
    await join()
    await create().catch(() => {})
    await profiles.getProfile(ID, { fieldsProfile: ['created'] })
    await join()
    await send({ attributes: { email: ada.email } })
    await send({ id: ID, attributes: {} })
    await find()
    const profile = { data: { type: 'profile', id: ID, attributes: {} } } as const
    await privacy.requestProfileDeletion({ data: { type: 'data-privacy-deletion-job', attributes: { profile } } })
    await find()
  },
  headers,
})

sameRequests('with consent', {
  set: consent,
  ours: [
    [create(), 'created'],
    [createAgain(), ours],
  ],
  async theirs(url) {
    const { profiles } = client(url)
    const more = { additionalFieldsProfile: ['subscriptions' as const] }
    const create = () => profiles.createProfile({ data: { type: 'profile', attributes } }, more)
    const subscriptions = { email: { marketing: { consent: 'SUBSCRIBED' } } } as const
    const profile = { type: 'profile', id: ID, attributes: { email: ada.email, subscriptions } } as const
    const subscribe = () =>
      profiles.bulkSubscribeProfiles({
        data: {
          type: 'profile-subscription-bulk-create-job',
          attributes: { customSource: 'waitlist', profiles: { data: [profile] } },
          relationships: { list: { data: { type: 'list', id: 'LiSt01' } } },
        },
      })
    await create()
    await subscribe()
    await create().catch(() => {})
    await profiles.getProfile(ID, {
      ...more,
      fieldsProfile: ['created', 'subscriptions'] as ['created', 'subscriptions'],
    })
    await subscribe()
  },
  headers,
})

const found = (id: string, email: string) => ({ type: 'profile', id, attributes: { email } })
const all = [found('a', 'Ada@example.com'), found('b', 'bob@example.com'), found('c', ada.email)]
const FIND = `GET /api/profiles?filter=equals(email,"${ada.email}")&fields[profile]=email`
const ERASE = 'POST /api/data-privacy-deletion-jobs'

rows({
  'without a list one call is enough': { calls: [[create(), 'created', CREATE]] },
  'a known address costs one call and has its id; its lists stay as they are, also in doubt': {
    set: list,
    had: ada.email,
    calls: [
      [create(), { is: 'existing', providerId: ID }, CREATE],
      [createAgain(), { is: 'existing', providerId: ID, ours: false }],
    ],
    joined: false,
  },
  'a known profile whose id Klaviyo does not tell is known all the same': {
    set: { ...list, PROVIDER_EXISTING: 'join' },
    says: klaviyoError(409, 'duplicate_profile'),
    calls: [[create(), { is: 'existing' }, CREATE]],
  },
  'what it asks us to wait is kept when the profile is there already': {
    set: list,
    says: one => (isListCall(one) ? { ...klaviyoError(429, 'no'), headers: { 'retry-after': '7' } } : undefined),
    calls: [[waitAfter(create()), 7_000]],
  },
  'the event goes to the profile by its id, and writes nothing into it': {
    had: ada.email,
    calls: [[start(known), { is: 'delivered' }]],
    afterwards(fake) {
      assert.deepEqual(Object.keys((fake.kept(ada.email) as { attributes: object }).attributes).sort(), [
        'created',
        'email',
        'first_name',
      ])
      assert.equal(fake.starts(ada.email), 1)
    },
  },
  'the check finds a list that is not there': {
    set: { KLAVIYO_LIST_ID: 'NoList' },
    calls: [[check, /^check the list: answered with 404/]],
  },
  'the check finds a list that the key may not read': {
    set: list,
    says: one => (isListCall(one) ? klaviyoError(403, 'permission_denied') : undefined),
    calls: [[check, 'misconfigured']],
  },
  'a key that may not delete is told which scope it needs': {
    had: ada.email,
    says: one => (isJob(one) ? klaviyoError(403, 'permission_denied') : undefined),
    calls: [[remove(), /data-privacy:write$/]],
  },
  'every profile that has the address is deleted': {
    says: ({ method }) => (method === 'GET' ? { status: 200, body: { data: all } } : undefined),
    calls: [[remove(), { is: 'removed' }, FIND, ERASE, ERASE]],
  },
  'with consent a new profile is subscribed by one more call, which takes it to the list too': {
    set: consent,
    calls: [[create(), 'created', CREATE_SHOWN, JOB]],
    joined: true,
    afterwards: fake => assert.equal(fake.consentOf(ada.email), 'SUBSCRIBED'),
  },
  'with consent an address that Klaviyo suppressed before it had a profile is not subscribed': {
    set: consent,
    says({ path }) {
      const marketing = { can_receive_email_marketing: false, consent: 'UNSUBSCRIBED', suppression: [] }
      const attributes = { created: new Date().toISOString(), subscriptions: { email: { marketing } } }
      return path === '/api/profiles' ? { status: 201, body: { data: { id: ID, attributes } } } : undefined
    },
    calls: [[create(), 'created', CREATE_SHOWN]],
  },
})

answers(
  'in doubt, a look at a profile',
  createAgain(),
  [
    [{ status: 500 }, 'unreached'],
    [klaviyoError(403, 'permission_denied'), 'misconfigured'],
    [{ status: 200, body: {} }, 'unreached'],
    [{ status: 200, body: { data: { id: ID, attributes: { created: 'long ago' } } } }, 'unreached'],
  ],
  { to: 'GET', had: ada.email },
)
answers('a creation', create(), [
  [klaviyoError(400, 'invalid', '/data/attributes/email'), 'refused'],
  [klaviyoError(400, 'invalid', '/data/attributes/first_name'), 'misconfigured'],
  [klaviyoError(400, 'invalid'), 'misconfigured'],
  // A conflict that does not say with whom.
  [klaviyoError(409, 'conflict'), 'existing'],
  [klaviyoError(410, 'gone'), 'misconfigured'],
])
answers('an event', start(), [[klaviyoError(409, 'conflict'), 'misconfigured']])

test('bodies are what the reference says, application/vnd.api+json; the client says application/json', async t => {
  const { server, provider } = await started(t, list)
  await provider.check(never)
  await provider.createContact(ada, false, never)
  for (const { method, headers } of server.received) {
    assert.equal(headers['content-type'], method === 'POST' ? 'application/vnd.api+json' : undefined)
  }
})

test('the id of a list is sent as it is, whatever is in it', async t => {
  const { fake, provider } = await started(t, { KLAVIYO_LIST_ID: 'a%2Fb?c' })
  fake.lists.add('a%2Fb?c')
  assert.equal((await provider.createContact(ada, false, never)).is, 'created')
  assert.deepEqual(fake.listsOf(ada.email), ['a%2Fb?c'])
})

describe('with consent', { timeout: 180_000 }, () => {
  const fakes: KlaviyoFake[] = []
  const keeping = () => {
    fakes.push(klaviyoFake())
    return fakes.at(-1)!
  }
  convergence({ ...klaviyo, fake: keeping, joining: { ...klaviyo.joining, settings: consent } })

  test('in the end who is new there is subscribed, and nobody else', () => {
    assert.ok(fakes.length > 0)
    for (const { consentOf } of fakes) {
      for (const name of ['a', 'b', 'c', 'd', 'e']) assert.equal(consentOf(`${name}@example.com`), 'SUBSCRIBED')
      for (const name of ['old-1', 'old-2']) assert.equal(consentOf(`${name}@example.com`), 'NEVER_SUBSCRIBED')
    }
  })

  test('without a list the job names none: the default of the account decides', async t => {
    const { fake, server, provider } = await started(t, { ...consent, KLAVIYO_LIST_ID: '' })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.ok(!('relationships' in server.received[1]!.json.data))
    assert.equal(fake.consentOf(ada.email), 'SUBSCRIBED')
  })

  test('with double opt-in the profile is asked to confirm, and is not on the list before that', async t => {
    const { fake, provider } = await started(t, consent)
    fake.doubleOptIn.add('LiSt01')
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.deepEqual([fake.asked, fake.listsOf(ada.email)], [[ada.email], []])
    assert.equal(fake.consentOf(ada.email), 'NEVER_SUBSCRIBED')
  })

  for (const existing of ['leave', 'join']) {
    test(`a profile that was there before is never subscribed, with PROVIDER_EXISTING=${existing}`, async t => {
      const { fake, server, provider } = await started(t, { ...consent, PROVIDER_EXISTING: existing })
      fake.had(ada.email)
      fake.leaves(ada.email, { consent: 'UNSUBSCRIBED', suppression: [] })
      for (const doubt of [false, true]) assert.equal((await provider.createContact(ada, doubt, never)).is, 'existing')
      assert.equal(fake.consentOf(ada.email), 'UNSUBSCRIBED')
      assert.ok(!server.received.some(isJob))
      assert.deepEqual(fake.listsOf(ada.email), existing === 'join' ? ['LiSt01'] : [])
    })
  }

  const email = '/data/attributes/profiles/data/0/attributes/email'
  const refusals: readonly (readonly [Said, string])[] = [
    [{ status: 503 }, 'unclear'],
    [{ status: 200, body: {} }, 'unclear'],
    [klaviyoError(400, 'invalid', '/data/relationships/list/data/id'), 'misconfigured'],
    [klaviyoError(403, 'permission_denied'), 'misconfigured'],
    [klaviyoError(400, 'invalid', email), 'refused'],
  ]
  for (const [said, is] of refusals) {
    test(`a job that is answered with ${JSON.stringify(said)} is ${is}, and the next attempt subscribes`, async t => {
      let failing = true
      const { fake, provider } = await started(t, consent, asked => (failing && isJob(asked) ? said : undefined))
      const first = await provider.createContact(ada, false, never)
      assert.equal(first.is, is)
      assert.equal(first.is === 'misconfigured' && first.tookEffect, is === 'misconfigured')
      failing = false
      assert.deepEqual(await provider.createContact(ada, true, never), ours)
      assert.equal(fake.consentOf(ada.email), 'SUBSCRIBED')
    })
  }

  const suppression = [{ reason: 'USER_SUPPRESSED', timestamp: '2026-11-22T00:00:00+00:00' }]
  for (const left of [
    { consent: 'UNSUBSCRIBED', suppression: [] },
    { consent: 'SUBSCRIBED', suppression },
  ] as const) {
    test(`in doubt, a profile that is ${JSON.stringify(left)} meanwhile is left alone`, async t => {
      const { fake, server, provider } = await started(t, consent)
      await provider.createContact(ada, false, never)
      fake.leaves(ada.email, left)
      assert.deepEqual(await provider.createContact(ada, true, never), ours)
      assert.equal(server.received.filter(isJob).length, 1)
    })
  }
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { convergence } from '../contracts/provider.convergence.ts'
import { within } from '../contracts/provider.sources.ts'
import { providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable, waitAfter } from './table.ts'

const KEY = 'klaviyo-key-of-the-test'
const LIST = 'LiSt01'

const klaviyoSettings = (url: string) => ({
  KLAVIYO_API_KEY: KEY,
  KLAVIYO_LIST_ID: LIST,
  KLAVIYO_BASE_URL: url,
})

interface Profile {
  readonly id: string
  readonly attributes: Record<string, unknown>
  readonly lists: Set<string>
  marketing: Marketing
}

interface Marketing {
  readonly consent: 'SUBSCRIBED' | 'UNSUBSCRIBED' | 'NEVER_SUBSCRIBED'
  readonly suppression: readonly { readonly reason: string; readonly timestamp: string }[]
}

interface KlaviyoFake extends VendorFake {
  readonly lists: Set<string>
  /** Lists with double opt-in, which are joined when it is confirmed. */
  readonly doubleOptIn: Set<string>
  /** Addresses that were asked to confirm. */
  readonly asked: string[]
  /** What the profile of an address has consented to, and how it changes there. */
  consentOf(email: string): Marketing['consent'] | undefined
  leaves(email: string, marketing: Marketing): void
  /** The lists of the profile of an address. */
  listsOf(email: string): readonly string[]
}

/*
 * Facts of https://github.com/klaviyo/openapi (stable, revision 2026-07-15), as far as we send or read it. All errors are one
 * shape there, without `meta`; that of the 409, `duplicate_profile_id`, is from
 * https://github.com/klaviyo/klaviyo-api-node/issues/75.
 */

const klaviyoError = (status: number, code: string, pointer = '/data', meta: object = {}): Said => ({
  status,
  body: {
    errors: [{ id: 'an-error', status, code, title: 'A title.', detail: 'A detail.', source: { pointer }, meta }],
  },
})
const notFound = klaviyoError(404, 'not_found')

/** As in Klaviyo's reference: JSON:API, a revision with every call, 409 with the id of the profile that is there. */
function klaviyoFake(): KlaviyoFake {
  const { contacts: profiles, find: findBy, start, facts } = contactBook<Profile>()
  const events = new Set<string>()
  const lists = new Set([LIST])
  const doubleOptIn = new Set<string>()
  const asked: string[] = []
  let ids = 0

  const byId = (id: string | undefined) => findBy(each => each.id === id)

  function shown({ id, attributes, marketing }: Profile, query: Received['query'] = {}) {
    const more = { can_receive_email_marketing: marketing.suppression.length === 0, ...marketing }
    const wanted = query['additional-fields[profile]'] === 'subscriptions'
    const subscriptions = wanted && { subscriptions: { email: { marketing: more } } }
    return { type: 'profile', id, attributes: { ...attributes, ...subscriptions } }
  }

  function make(attributes: Record<string, unknown>, created = new Date().toISOString()): Profile {
    const made: Profile = {
      id: `01PROFILE${++ids}`,
      attributes: { ...attributes, created },
      lists: new Set<string>(),
      marketing: { consent: 'NEVER_SUBSCRIBED', suppression: [] },
    }
    profiles.set(String(attributes.email), made)
    return made
  }

  function create({ json, query }: Received): Said {
    const { attributes } = json.data
    if (attributes.email.startsWith('refused')) return klaviyoError(400, 'invalid', '/data/attributes/email')
    const known = profiles.get(attributes.email)
    if (known === undefined) return { status: 201, body: { data: shown(make(attributes), query) } }
    return klaviyoError(409, 'duplicate_profile', '/data/attributes', { duplicate_profile_id: known.id })
  }

  function join(list: string, members: { id: string }[]): Said {
    if (!lists.has(list) || members.some(({ id }) => byId(id) === undefined)) return notFound
    for (const { id } of members) byId(id)!.lists.add(list)
    return { status: 204 }
  }

  /** Lifts what somebody unsubscribed from, as documented. The job is done at once here. */
  function subscribe({ attributes, relationships }: Received['json']): Said {
    const list: string | undefined = relationships?.list.data.id
    if (list !== undefined && !lists.has(list)) return notFound
    for (const { id, attributes: each } of attributes.profiles.data) {
      const profile = byId(id)
      if (profile?.attributes.email !== each.email) return klaviyoError(400, 'invalid')
      const isOld = attributes.historical_import === true
      if ((each.subscriptions.email.marketing.consented_at !== undefined) !== isOld) return klaviyoError(400, 'invalid')
      if (list !== undefined && doubleOptIn.has(list) && !isOld) asked.push(each.email)
      else {
        profile!.marketing = { consent: 'SUBSCRIBED', suppression: [] }
        if (list !== undefined) profile!.lists.add(list)
      }
    }
    return { status: 202 }
  }

  /** One identifier. The job is done at once here. */
  function erase({ profile: { data } }: Received['json']): Said {
    if (data.id === undefined || Object.keys(data.attributes).length > 0) return klaviyoError(400, 'invalid')
    profiles.delete(String(byId(data.id)?.attributes.email))
    return { status: 202 }
  }

  function find({ filter, 'page[size]': size = '20' }: Received['query']): Said {
    const [, email] = /^equals\(email,"([^"\\]*)"\)$/.exec(filter ?? '') ?? []
    if (filter !== undefined && email === undefined) return klaviyoError(400, 'invalid', 'filter')
    const found = [...profiles.values()].filter(({ attributes }) => email === undefined || attributes.email === email)
    return { status: 200, body: { data: found.slice(0, Number(size)).map(each => shown(each)) } }
  }

  function record({ metric, profile: { data }, unique_id: uniqueId }: Received['json']): Said {
    const { id, attributes } = data
    const profile = id === undefined ? (profiles.get(attributes.email) ?? make(attributes)) : byId(id)
    if (profile === undefined) return notFound
    const key = JSON.stringify([profile.id, metric.data.attributes.name, uniqueId ?? ++ids])
    if (!events.has(key)) start(String(profile.attributes.email))
    events.add(key)
    return { status: 202 }
  }

  function refuses({ method, query, headers }: Received): Said | undefined {
    if (headers.authorization !== `Klaviyo-API-Key ${KEY}`) return klaviyoError(401, 'not_authenticated')
    if (headers.revision !== '2026-07-15') return klaviyoError(400, 'invalid', '/headers/revision')
    const isJson = /^application\/(?:vnd\.api\+)?json/.test(headers['content-type'] ?? '')
    if (method === 'POST' && !isJson) return klaviyoError(415, 'unsupported_media_type')
    const known = ['filter', 'fields[profile]', 'additional-fields[profile]', 'page[size]', 'fields[list]']
    const unknown = Object.keys(query).find(name => !known.includes(name))
    return unknown === undefined ? undefined : klaviyoError(400, 'invalid', unknown)
  }

  const listsOf = (email: string) => [...(profiles.get(email)?.lists ?? [])]
  const one = (status: number, data: object | undefined): Said =>
    data === undefined ? notFound : { status, body: { data } }

  return {
    ...facts,
    lists,
    doubleOptIn,
    asked,
    listsOf,
    answer: vendorApi({
      refuses,
      routes: {
        'POST /api/profiles': create,
        'GET /api/profiles': ({ query }) => find(query),
        'GET /api/profiles/{id}': ({ at, query }) => one(200, byId(at.id) && shown(byId(at.id)!, query)),
        'POST /api/lists/{id}/relationships/profiles': ({ at, json }) => join(at.id!, json.data),
        'GET /api/lists/{id}': ({ at }) => one(200, lists.has(at.id!) ? { type: 'list', id: at.id } : undefined),
        'POST /api/profile-subscription-bulk-create-jobs': ({ json }) => subscribe(json.data),
        'POST /api/data-privacy-deletion-jobs': ({ json }) => erase(json.data.attributes),
        'POST /api/events': ({ json }) => record(json.data.attributes),
      },
    }),
    consentOf: email => profiles.get(email)?.marketing.consent,
    leaves(email, marketing) {
      profiles.get(email)!.marketing = marketing
    },
    joined: email => listsOf(email).includes(LIST),
    had: email => void make({ email, first_name: 'Old' }, '2020-01-01T00:00:00+00:00'),
    kept: email => (profiles.has(email) ? { ...profiles.get(email), lists: listsOf(email) } : undefined),
  }
}

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
  sources: { contact: within('data.attributes.properties'), event: within('data.attributes.properties') },
  start: {
    path: /^\/api\/events$/,
    done: { status: 202 },
    id: ({ json }: Received) => json.data.attributes.unique_id,
  },
} as const
providerContract(klaviyo)

const { started, rows, answers, sameRequests, missing } = vendorTable(klaviyo)
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
  headers,
})

sameRequests('with consent', {
  set: consent,
  ours: [
    [create(), 'created'],
    [createAgain(), ours],
  ],
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

missing([[{ KLAVIYO_LIST_ID: 'NoList' }, /^check the list: answered with 404/]])

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

describe('with consent', () => {
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

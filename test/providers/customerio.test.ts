import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { APIClient, IdentifierType, PipelinesClient, TrackClient } from 'customerio-node'
import { readConfig } from '../../src/config/config.ts'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, eventOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'
import { check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const SITE_ID = 'site-id-of-the-test'
const API_KEY = 'customerio-track-key'
const APP_KEY = 'customerio-app-key'
const WRITE_KEY = 'customerio-write-key'
const SEGMENT = '7'

/** All APIs at one address: their paths differ. */
const app = (url: string) => ({
  CUSTOMERIO_APP_KEY: APP_KEY,
  CUSTOMERIO_BASE_URL: url,
  CUSTOMERIO_APP_BASE_URL: url,
})
const customerioSettings = (url: string) => ({
  CUSTOMERIO_SITE_ID: SITE_ID,
  CUSTOMERIO_API_KEY: API_KEY,
  ...app(url),
})
const pipelinesSettings = (url: string) => ({
  CUSTOMERIO_API: 'pipelines',
  CUSTOMERIO_API_KEY: WRITE_KEY,
  ...app(url),
})
const customerioSegment = { CUSTOMERIO_SEGMENT_ID: SEGMENT }
const customerioDynamicSegment = { CUSTOMERIO_SEGMENT_ID: '8' }

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`
const isUlid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/*
 * Facts of the documents at https://docs.customer.io/integrations/api/track, /cdp and /app (2026-08), as far as we send or
 * read it. What they leave open is an empty object.
 */
// Any shape of traits would do; ours are plain.
// Our check is a message about nobody.

const done: Said = { status: 200, body: {} }
const wrong = (what: string): Said => ({ status: 400, body: { meta: { errors: [what] } } })
const notFound: Said = { status: 404, body: {} }

/**
 * As documented at https://docs.customer.io/integrations/api: identifying somebody says the same whether they are new or
 * not and sets what is sent; an event with the ULID of an earlier one is ignored. The Pipelines API tells the Track API, and
 * without its strict mode it answers with 200 to what it drops.
 */
function customerioFake(): VendorFake {
  const { contacts: people, find, start, facts } = contactBook<Record<string, unknown>>()
  const seen = new Set<string>()
  const members = new Set<string>()

  function identify(identifier: string, attributes: object): Said {
    const email = identifier.toLowerCase()
    const known = people.get(email) ?? { cio_id: `a3${String(people.size + 1).padStart(6, '0')}` }
    people.set(email, { ...known, email, ...attributes })
    return done
  }

  /** What is not there is deleted just as well. */
  function remove(identifier: string): Said {
    people.delete(identifier.toLowerCase())
    return done
  }

  function track(identifier: string, { name, id }: { readonly name: string; readonly id?: string }): Said {
    if (name === '') return wrong('name is missing')
    if (id !== undefined && isUlid.test(id)) {
      if (seen.has(id)) return done
      seen.add(id)
    }
    start(identifier.toLowerCase())
    return done
  }

  /** A message that is wrong is dropped without a word, but in strict mode. */
  const piped =
    (does: (json: Received['json']) => Said) =>
    ({ headers, json }: Received): Said => {
      const refused = (status: number): Said => (headers['x-strict-mode'] === '1' ? { status, body: {} } : done)
      if (headers.authorization !== basic(`${WRITE_KEY}:`)) return refused(401)
      return json?.userId ? does(json) : refused(400)
    }

  function addTo(segment: string | undefined, { id_type }: Received['query'], ids: readonly string[]): Said {
    if (segment !== SEGMENT) return wrong('segment not found')
    if (id_type !== 'email') return wrong('ids')
    for (const id of ids) {
      identify(id, {})
      members.add(id)
    }
    return done
  }

  function lookUp(email = ''): Said {
    const found = people.get(email.toLowerCase())
    const results = found === undefined ? [] : [{ cio_id: found.cio_id, id: null, email: found.email }]
    return { status: 200, body: { results } }
  }

  /** Attributes are all kept as texts. */
  function attributesOf(id: string | undefined, { id_type }: Received['query']): Said {
    const found = find(({ cio_id }) => id_type === 'cio_id' && cio_id === id)
    if (found === undefined) return notFound
    const texts = Object.fromEntries(Object.entries(found).map(([name, value]) => [name, String(value)]))
    return { status: 200, body: { customer: { id: '', attributes: texts } } }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses({ path, method, headers }) {
        if (method === 'POST' && path.startsWith('/v1/')) return undefined
        const key = path.startsWith('/v1/') ? `Bearer ${APP_KEY}` : basic(`${SITE_ID}:${API_KEY}`)
        return headers.authorization === key ? undefined : { status: 401, body: { meta: { error: 'Unauthorized' } } }
      },
      routes: {
        'PUT /api/v1/customers/{identifier}': ({ at, json }) => identify(at.identifier!, json),
        'DELETE /api/v1/customers/{identifier}': ({ at }) => remove(at.identifier!),
        'POST /api/v1/customers/{identifier}/events': ({ at, json }) => track(at.identifier!, json),
        'POST /api/v1/segments/{segment}/add_customers': ({ at, query, json }) => addTo(at.segment, query, json.ids),
        'GET /api/v1/accounts/region': () => ({ status: 200, body: { region: 'us' } }),
        'POST /v1/identify': piped(({ userId, traits = {} }) => identify(userId, traits)),
        // And a type, which the document calls required, and says that it is set by the path.
        'POST /v1/track': piped(({ userId, event: name, messageId: id }) =>
          name === 'User Deleted' ? remove(userId) : track(userId, { name, id }),
        ),
        'GET /v1/customers': ({ query }) => lookUp(query.email),
        'GET /v1/customers/{id}/attributes': ({ at, query }) => attributesOf(at.id, query),
        'GET /v1/segments/{segment}': ({ at: { segment } }) => {
          const type = segment === SEGMENT ? 'manual' : 'dynamic'
          return segment === '9' ? notFound : { status: 200, body: { segment: { id: Number(segment), type } } }
        },
      },
    }),
    had: email => void identify(email, { first_name: 'Old', created_at: 1_577_836_800 }),
    kept(email) {
      const person = people.get(email)
      return person && { ...person, segments: members.has(email) ? [SEGMENT] : [] }
    },
    joined: email => members.has(email),
  }
}

const DAY = 86_400_000
const withoutAppKey = { CUSTOMERIO_APP_KEY: '' }
const wrongKey = { CUSTOMERIO_API_KEY: 'another-key' }
const common = {
  vendor: 'customerio',
  wrongKey,
  wrongLookupKey: { CUSTOMERIO_APP_KEY: 'another-key' },
  wrongSetting: { CUSTOMERIO_APP_KEY: 'another-key' },
  fake: customerioFake,
  tellsId: false,
  statusAlone: true,
} as const
const joining = {
  settings: customerioSegment,
  members: ['segments'],
  each: { setting: 'CUSTOMERIO_SEGMENT_ID', path: /^\/api\/v1\/segments\/(\d+)\/add_customers$/ },
}
const tracked = {
  ...common,
  settings: customerioSettings,
  joining,
  sources: [
    { contact: (name: string) => name, event: within('data') },
    { settings: withoutAppKey, event: within('data') },
  ],
  start: {
    path: /^\/api\/v1\/customers\/[^/]+\/events$/,
    done: { status: 200, body: {} },
    statusAlone: true,
    id: ({ json }: Received) => json.id,
  },
} as const
const messages = {
  ...common,
  api: 'Pipelines API',
  settings: pipelinesSettings,
  promises: { repeatable: DAY },
  sources: [{ contact: within('traits'), event: within('properties') }],
  start: {
    path: /^\/v1\/track$/,
    done: { status: 200, body: {} },
    statusAlone: true,
    id: ({ json }: Received) => json.messageId,
  },
} as const
providerContract(tracked)
providerContract(messages)

const track = vendorTable(tracked)
const pipelines = vendorTable(messages)
const ada = contactOf('ada@example.com', { createdAt: new Date('2026-02-01T12:00:00.900Z') })
const bob = contactOf('bob@example.com', { createdAt: ada.createdAt })
const odd = contactOf('a%41?b#c&d+e@example.com')
const later = { ...ada, createdAt: new Date('2026-02-01T12:00:01Z') }
const ID = 'a3000001'
const ULID = '01K0EMYF00FH79T2HZ3GNMTQKF'
const attributes = { CUSTOMERIO_ATTRIBUTES: 'source=landing page' }
const names = { first_name: 'Ada', last_name: 'King Lovelace', created_at: 1_769_947_200 }
const LOOK = `GET /v1/customers?email=${ada.email}`
const PERSON = `PUT /api/v1/customers/${ada.email}`
const IDENTIFY = 'POST /v1/identify'

track.sameRequests('with an App API', {
  ours: [
    [check, null],
    [create(ada), 'created'],
    [createAgain(ada), { is: 'existing', providerId: ID, ours: true }],
    [start(ada), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  async theirs(url) {
    const client = new TrackClient(SITE_ID, API_KEY, { url: `${url}/api/v1` })
    const app = new APIClient(APP_KEY, { url: `${url}/v1` })
    await client.getAccountRegion()
    await app.getCustomersByEmail('nobody@example.com')
    await app.getCustomersByEmail(ada.email)
    await client.identify(ada.email, { email: ada.email, ...names })
    await app.getCustomersByEmail(ada.email)
    await app.getAttributes(ID, IdentifierType.CioId)
    await client.track(ada.email, { name: 'waitlist.joined', id: ULID, data: { name: 'Ada King Lovelace' } })
    await app.getCustomersByEmail(ada.email)
    await client.destroy(ada.email)
    await app.getCustomersByEmail(ada.email)
  },
  headers: ['authorization'],
})

track.sameRequests('with a segment and attributes', {
  set: { ...customerioSegment, ...attributes, PROVIDER_EXISTING: 'join' },
  ours: [
    [check, null],
    [create(ada), 'created'],
    [create(ada), 'existing'],
  ],
  async theirs(url) {
    const client = new TrackClient(SITE_ID, API_KEY, { url: `${url}/api/v1` })
    const app = new APIClient(APP_KEY, { url: `${url}/v1` })
    await client.getAccountRegion()
    await app.getCustomersByEmail('nobody@example.com')
    await app.getSegment(7)
    await app.getCustomersByEmail(ada.email)
    await client.identify(ada.email, { email: ada.email, ...names, source: 'landing page' })
    await client.addCustomersToSegment(7, [ada.email], IdentifierType.Email)
    await app.getCustomersByEmail(ada.email)
    await client.addCustomersToSegment(7, [ada.email], IdentifierType.Email)
  },
  headers: ['authorization'],
})

pipelines.sameRequests('messages of the Pipelines API', {
  set: withoutAppKey,
  ours: [
    [create(ada), 'created'],
    [start(ada), 'delivered'],
    [remove(), { is: 'removed' }],
  ],
  async theirs(url) {
    const client = new PipelinesClient(WRITE_KEY, { url: `${url}/v1`, strictMode: true })
    const [userId, properties] = [ada.email, { name: 'Ada King Lovelace' }]
    await client.identify({ userId, traits: { email: userId } })
    await client.track({ userId, event: 'waitlist.joined', messageId: ULID, properties })
    await client.track({ userId, event: 'User Deleted' })
  },
  headers: ['content-type', 'authorization', 'x-strict-mode'],
  // The client adds to every message where it comes from, when, and a random id where we choose none.
  become: (theirs, ours) =>
    theirs.map((asked, i): Received => {
      const { context: _, timestamp: __, messageId, ...json } = asked.json
      return { ...asked, json: ours[i]!.json.messageId === undefined ? json : { ...json, messageId } }
    }),
})

describe('the Track API', () => {
  track.rows({
    'somebody who exists is looked up, and not touched': {
      had: ada.email,
      set: { CUSTOMERIO_ATTRIBUTES: 'source=landing page,plan=early' },
      calls: [[create(ada), { is: 'existing', providerId: ID }, LOOK]],
      afterwards: fake => assert.ok(!Object.hasOwn(fake.kept(ada.email) as object, 'source')),
    },
    'in doubt, somebody who has the second of the signup is ours': {
      calls: [
        [create(ada), 'created'],
        [createAgain(later), { is: 'existing', providerId: ID, ours: false }],
      ],
    },
    'any address may be in a path and in a query': {
      calls: [
        [create(odd), 'created', `GET /v1/customers?email=${odd.email}`, `PUT /api/v1/customers/${odd.email}`],
        [start(odd), 'delivered', `POST /api/v1/customers/${odd.email}/events`],
      ],
    },
    'an event has no time of its own: an old one would start no campaign': {
      calls: [
        [
          ({ automation }) => automation!.deliver({ ...eventOf(ada), at: new Date('2020-01-01') }, never),
          'delivered',
          [
            `POST /api/v1/customers/${ada.email}/events`,
            { name: 'waitlist.joined', id: ULID, data: { name: 'Ada King Lovelace' } },
          ],
        ],
      ],
    },
    'without the key of the App API everybody is new, the address alone is sent, and nobody joins a segment': {
      set: { ...withoutAppKey, ...attributes, ...customerioSegment },
      had: ada.email,
      calls: [
        [check, null, 'GET /api/v1/accounts/region'],
        [create(ada), { is: 'created' }, [PERSON, { email: ada.email }]],
        [createAgain(ada), { is: 'created' }, [PERSON, { email: ada.email }]],
        [remove(), { is: 'removed' }, `DELETE /api/v1/customers/${ada.email}`],
        [remove(), { is: 'removed' }, `DELETE /api/v1/customers/${ada.email}`],
      ],
      joined: false,
    },
    'the check tells a segment that is not manual': {
      set: customerioDynamicSegment,
      calls: [[check, /^look for the segment 8: it is not a manual one$/]],
    },
  })

  track.missing([
    [{ CUSTOMERIO_SEGMENT_ID: '9' }, /^look for the segment 9: answered with 404/],
    [{ CUSTOMERIO_APP_KEY: 'another-key' }, /^find a person/],
    [{ CUSTOMERIO_SITE_ID: 'another-site' }, /Track API/],
  ])

  track.answers(
    'a look-up',
    create(ada),
    [{}, { results: null }, { results: {} }, { results: [{}] }, []].map(body => [{ status: 200, body }, 'unreached']),
  )
})

describe('the Pipelines API', () => {
  pipelines.rows({
    'gives a new person the attributes too': {
      set: attributes,
      calls: [
        [
          create(bob),
          'created',
          `GET /v1/customers?email=${bob.email}`,
          [IDENTIFY, { userId: bob.email, traits: { email: bob.email, ...names, source: 'landing page' } }],
        ],
      ],
    },
    // Without the strict mode it answers with 200 to a wrong key.
    'a wrong key is told': {
      set: { ...wrongKey, ...withoutAppKey },
      calls: [
        [create(ada), 'misconfigured', IDENTIFY],
        [check, /Pipelines API key: answered with 401/, [IDENTIFY, {}]],
      ],
    },
    'the check is a message about nobody': {
      set: withoutAppKey,
      calls: [[check, null, [IDENTIFY, {}]]],
    },
    'one that accepts a message about nobody is not strict, and passes no check': {
      set: withoutAppKey,
      says: { status: 200, body: {} },
      calls: [[check, 'unreached']],
    },
  })
})

for (const { answers } of [track, pipelines]) {
  const good = [{ status: 200, body: '' }, { status: 200, body: { success: true } }, { status: 204 }]
  const refused = { status: 400, body: { meta: { errors: ['Something.'] } } }
  const more = { set: withoutAppKey }
  answers('a person', create(ada), [...good.map(said => [said, 'created'] as const), [refused, 'misconfigured']], more)
  answers('an event', start(ada), [...good.map(said => [said, 'delivered'] as const), [refused, 'refused']], more)
}

track.contradictions([
  [{ CUSTOMERIO_SITE_ID: '' }, /^CUSTOMERIO_SITE_ID is missing/],
  [{ CUSTOMERIO_API: 'pipelines' }, /^CUSTOMERIO_SITE_ID is of the Track API/],
  [{ CUSTOMERIO_ATTRIBUTES: 'plan=a,email=b' }, /^CUSTOMERIO_ATTRIBUTES .*email is taken/],
  [{ CUSTOMERIO_API: 'app' }, /^CUSTOMERIO_API must be one of track, pipelines/],
])
pipelines.contradictions([[customerioSegment, /^CUSTOMERIO_SEGMENT_ID needs CUSTOMERIO_API=track/]])

test('settings that need the key of the App API have no effect without it, and say so', async () => {
  const settings = { ...customerioSettings('http://127.0.0.1'), ...withoutAppKey, ...customerioSegment, ...attributes }
  const result = await readConfig({ PROVIDER: 'customerio', ...settings })
  assert.ok('config' in result)
  for (const name of ['CUSTOMERIO_ATTRIBUTES', 'CUSTOMERIO_SEGMENT_ID']) {
    assert.ok(result.config.warnings.includes(`${name} has no effect without CUSTOMERIO_APP_KEY.`))
  }
})

test('the id of an event is a ULID of the same 128 bits, and tells the time of the signup', () => {
  const bits = [...ULID].reduce((all, one) => all * 32n + BigInt('0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(one)), 0n)
  assert.equal(bits.toString(16).padStart(32, '0'), ada.id.replaceAll('-', ''))
})

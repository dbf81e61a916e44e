import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import {
  contactBook,
  exactly,
  object,
  type Route,
  type Routed,
  taking,
  text,
  vendorApi,
  whole,
} from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, start, vendorTable, waitAfter } from './table.ts'

const KEY = 'kit_key-of-the-test'
const TAG = 175
const TAGS = [181, 182]
/** It asks for a confirmation. */
const FORM = 217
/** It does not. */
const FORM_WITHOUT = 218
const FIELDS = ['source']

const kitSettings = (url: string) => ({ KIT_API_KEY: KEY, KIT_TAG_ID: String(TAG), KIT_BASE_URL: url })
const kitJoined = { KIT_TAG_IDS: TAGS.join(), KIT_FORM_ID: String(FORM) }
const kitFormWithout = { KIT_FORM_ID: String(FORM_WITHOUT) }
const kitFields = { PROVIDER_FIELDS: 'source=landing page' }

interface Subscriber {
  readonly id: number
  first_name: string | null
  readonly email_address: string
  state: string
  readonly created_at: string
  readonly fields: object
}

/* Facts of https://developers.kit.com/api-reference/v4.json (4.0), as far as we send or read it. */
const textOrNull = { type: ['string', 'null'] }
const ofSubscribers = {
  id: whole,
  first_name: textOrNull,
  email_address: text,
  state: { enum: ['active', 'cancelled', 'bounced', 'complained', 'inactive'] },
  created_at: text,
  fields: object(),
}
const creation = exactly(
  { email_address: text },
  {
    first_name: textOrNull,
    state: ofSubscribers.state,
    // By the key of each. The document says of an unknown one that it is refused, and that it is ignored.
    fields: { type: 'object', additionalProperties: text },
  },
)

const errors = (status: number, ...texts: readonly string[]): Said => ({ status, body: { errors: texts } })
const notFound = errors(404, 'Not Found')
const paged = (what: string, items: readonly object[]): Said => ({
  status: 200,
  body: { [what]: items, pagination: {} },
})

/** The vendor's times have no fraction of a second. */
const timeOf = (date: Date) => `${date.toISOString().slice(0, 19)}Z`

/**
 * As documented at https://developers.kit.com/api-reference: the creation is an upsert, and rewrites the first name. A form
 * makes active who is inactive, unless it asks for a confirmation first. Of an unknown custom field the document says both
 * that it is refused and that it is ignored: here it is refused.
 */
function kitFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<Subscriber>()
  /** Who has which tag, and is in which form, as `tags/175 1`. */
  const given = new Set<string>()
  let ids = 0

  const placesOf = (subscriber: Subscriber | undefined) =>
    [...given].filter(each => each.endsWith(` ${subscriber?.id}`)).map(each => each.split(' ')[0])

  function list({ email_address: addresses = '', status = 'active' }: Received['query']): Said {
    const wanted = addresses.split(',').map(each => contacts.get(each))
    const found = wanted.filter(each => each !== undefined)
    return paged(
      'subscribers',
      found.filter(each => status === 'all' || status === each.state),
    )
  }

  function upsert({ email_address: email, first_name = null, state = 'active', fields = {} }: Received['json']): Said {
    if (!/^[^@\s,]+@[^@\s,]+$/.test(email) || email.startsWith('refused'))
      return errors(422, 'Email address is invalid')
    const unknown = Object.keys(fields).find(key => !FIELDS.includes(key))
    if (unknown !== undefined) return errors(422, `Custom field ${unknown} does not exist`)
    const known = contacts.get(email)
    if (known !== undefined) {
      known.first_name = first_name ?? known.first_name
      return { status: 200, body: { subscriber: known } }
    }
    const subscriber = { id: ++ids, first_name, email_address: email, state, created_at: timeOf(new Date()), fields }
    contacts.set(email, subscriber)
    return { status: 201, body: { subscriber } }
  }

  /** A subscriber, who is named by an id in the path or by an address in the body, is added to a tag or form. */
  function give(kind: string, { at, json }: Routed): Said {
    const id = Number(at.place)
    const subscriber = find(each =>
      at.id === undefined ? each.email_address === json.email_address : String(each.id) === at.id,
    )
    if (subscriber === undefined) return notFound
    const key = `${kind}/${id} ${subscriber.id}`
    const isNew = !given.has(key)
    given.add(key)
    if (id === FORM_WITHOUT && subscriber.state === 'inactive') subscriber.state = 'active'
    if (isNew && id === TAG) start(subscriber.email_address)
    const now = timeOf(new Date())
    const more = { tagged_at: now, added_at: now, referrer: '', referrer_utm_parameters: {} }
    return { status: isNew ? 201 : 200, body: { subscriber: { ...subscriber, ...more } } }
  }

  /** The calls of a kind of place. */
  function place(kind: string, known: readonly number[]) {
    const routed = (does: Route) => (asked: Routed) => (known.includes(Number(asked.at.place)) ? does(asked) : notFound)
    const giving = routed(asked => give(kind, asked))
    const path = `/v4/${kind}/{place}/subscribers`
    return {
      [`GET ${path}`]: routed(() => paged('subscribers', [])),
      [`POST ${path}`]: taking(exactly({ email_address: text }), giving),
      [`POST ${path}/{id}`]: taking(exactly({}), giving),
    }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers['x-kit-api-key'] === KEY ? undefined : errors(401, 'The access token is invalid'),
      routes: {
        'GET /v4/account': () => ({ status: 200, body: { user: {}, account: { id: 29 } } }),
        'GET /v4/subscribers': ({ query }) => list(query),
        'POST /v4/subscribers': taking(creation, ({ json }) => upsert(json)),
        ...place('tags', [TAG, ...TAGS]),
        ...place('forms', [FORM, FORM_WITHOUT]),
      },
    }),
    had(email) {
      const old = { first_name: 'Old', email_address: email, state: 'cancelled', fields: { category: 'One' } }
      contacts.set(email, { id: ++ids, ...old, created_at: '2023-02-17T11:43:55Z' })
    },
    kept(email) {
      const subscriber = contacts.get(email)
      return subscriber && { ...subscriber, places: placesOf(subscriber) }
    },
    joined(email) {
      const places = placesOf(contacts.get(email))
      return [...TAGS.map(tag => `tags/${tag}`), `forms/${FORM}`].every(each => places.includes(each))
    },
  }
}

const kit = {
  vendor: 'kit',
  settings: kitSettings,
  wrongKey: { KIT_API_KEY: 'kit_another-key' },
  wrongSetting: { PROVIDER_FIELDS: 'sauce=landing page' },
  fake: kitFake,
  refused: 'refused@example.com',
  joining: {
    settings: kitJoined,
    members: ['places'],
    each: {
      setting: 'KIT_TAG_IDS',
      path: /^\/v4\/tags\/(\d+)\/subscribers\/1$/,
      added: () => ({ status: 201, body: { subscriber: { id: 1 } } }),
    },
  },
  start: {
    path: /^\/v4\/tags\/\d+\/subscribers$/,
    done: { status: 201, body: { subscriber: { id: 7 } } },
    id: ({ json }: Received) => json.email_address,
  },
} as const
providerContract(kit)

const { started, rows, answers, contradictions, missing } = vendorTable(kit)
const plato = contactOf('plato@example.com', { name: 'Plato' })
const known = { ...ada, providerId: '1' }
const [FIND, CREATE] = [`GET /v4/subscribers?email_address=${ada.email}&status=all`, 'POST /v4/subscribers']
const START_TAG = ['POST /v4/tags/175/subscribers/1', {}] as const

rows({
  'an address is looked for in every state, then sent with the first name': {
    calls: [
      [create(), { is: 'created', providerId: '1' }, FIND, [CREATE, { email_address: ada.email, first_name: 'Ada' }]],
      [start(), 'delivered', ['POST /v4/tags/175/subscribers', { email_address: ada.email }]],
    ],
  },
  'fields of the settings are custom fields': {
    set: kitFields,
    calls: [
      [
        create(),
        'created',
        FIND,
        [CREATE, { email_address: ada.email, first_name: 'Ada', fields: { source: 'landing page' } }],
      ],
    ],
  },
  'a new contact gets the tags, then the form, which asks it to confirm': {
    set: kitJoined,
    calls: [
      [
        create(),
        { is: 'created', providerId: '1' },
        FIND,
        [CREATE, { email_address: ada.email, first_name: 'Ada', state: 'inactive' }],
        'POST /v4/tags/181/subscribers/1',
        'POST /v4/tags/182/subscribers/1',
        'POST /v4/forms/217/subscribers/1',
      ],
    ],
    keeps: { state: 'inactive' },
  },
  'a form that does not ask makes a new contact active': {
    set: kitFormWithout,
    calls: [[create(), 'created']],
    keeps: { state: 'active' },
  },
  'who unsubscribed is known, with the id': {
    had: ada.email,
    calls: [[create(), { is: 'existing', providerId: '1', ours: false }, FIND]],
  },
  'a list that ignores the filter makes nobody known': {
    says: ({ method }) =>
      method === 'GET'
        ? { status: 200, body: { subscribers: [{ id: 1, email_address: 'somebody@example.com' }] } }
        : undefined,
    calls: [[create(), 'created']],
  },
  'without a tag there is no automation': {
    set: { KIT_TAG_ID: '' },
    calls: [[async ({ automation }) => automation, null]],
  },
  'the tag starts the automation': {
    calls: [
      [create(), 'created'],
      [start(known), 'delivered', START_TAG],
    ],
  },
  'a subscriber that is not there is our mistake': { calls: [[start(known), 'misconfigured']] },
  'the check looks for all of it': {
    set: kitJoined,
    calls: [
      [
        check,
        null,
        'GET /v4/account',
        'GET /v4/tags/175/subscribers?per_page=1',
        'GET /v4/tags/181/subscribers?per_page=1',
        'GET /v4/tags/182/subscribers?per_page=1',
        'GET /v4/forms/217/subscribers?per_page=1',
      ],
    ],
  },
  'a 429, which is plain text and does not say how long, asks for a minute': {
    says: { status: 429, body: 'Retry later', headers: { 'content-type': 'text/plain' } },
    calls: [[waitAfter(create()), 60_000]],
  },
})

missing([
  [{ KIT_TAG_ID: '176' }, /tag 176 of KIT_TAG_ID:/],
  [{ KIT_TAG_IDS: '181,176' }, /tag 176 of KIT_TAG_IDS:/],
  [{ KIT_FORM_ID: '176' }, /form 176 of KIT_FORM_ID:/],
])

const subscriber = { id: 7, first_name: null, email_address: ada.email, state: 'active', fields: {} }
const old = { ...subscriber, created_at: '2023-02-17T11:43:55Z' }
const young = { ...subscriber, created_at: new Date().toISOString() }
const refusing = (...errors: readonly string[]): Said => ({ status: 422, body: { errors } })
answers(
  'a creation',
  createAgain(),
  [
    [
      { status: 202, body: { subscriber: young } },
      { is: 'created', providerId: '7' },
    ],
    // Somebody added it since the look-up.
    [
      { status: 200, body: { subscriber: old } },
      { is: 'existing', providerId: '7', ours: false },
    ],
    [
      { status: 200, body: { subscriber: young } },
      { is: 'existing', providerId: '7', ours: true },
    ],
    [{ status: 200, body: {} }, 'unclear'],
    [{ status: 201, body: { subscriber: {} } }, 'unclear'],
    [{ status: 404, body: { errors: ['Not Found'] } }, 'misconfigured'],
    [refusing('Email address is invalid'), 'refused'],
    [refusing('Email address is invalid', 'State is invalid'), 'misconfigured'],
    [refusing('State is invalid'), 'misconfigured'],
    [refusing('The email of the form is invalid'), 'misconfigured'],
    [refusing(), 'misconfigured'],
  ],
  { to: 'POST' },
)
answers('the check', check, [[{ status: 200, body: {} }, 'unreached']])

contradictions([[{ KIT_TAG_IDS: '181,175' }, /^KIT_TAG_IDS must not have the tag of KIT_TAG_ID/]])

test('what our own pace keeps back after a creation leaves doubt, and says nothing about Kit', async t => {
  const { fake, provider } = await started(t, { KIT_TAG_IDS: '181,182' })
  fake.had(plato.email)
  // Of 120 calls a minute, three are left for a signup that takes four.
  await Promise.all(Array.from({ length: 117 }, () => provider.createContact(plato, false, never)))
  assert.partialDeepStrictEqual(await provider.createContact(ada, false, never), { is: 'unclear', notSent: true })
  assert.equal(fake.count(ada.email), 1)
})

test('what the first tag kept a new contact from is made up for', async t => {
  const { fake, server, provider } = await started(t, kitJoined)
  server.next(null, null, '500 before')
  assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
  const second = await provider.createContact(ada, true, never)
  assert.deepEqual(second, { is: 'existing', providerId: '1', ours: true })
  assert.equal(fake.joined!(ada.email), true)
})

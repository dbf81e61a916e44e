import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactOf, eventOf, providerContract } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
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
import { ada, check, create, createAgain, never, start, vendorTable, waitAfter } from './table.ts'

const kit = {
  vendor: 'kit',
  settings: kitSettings,
  wrongKey: { KIT_API_KEY: 'kit_another-key' },
  wrongSetting: { KIT_FIELDS: 'sauce=landing page' },
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
  sources: [{}, { settings: { ...kitFormWithout, ...kitReferrer }, contact: (name: string) => `referrer?${name}` }],
  start: {
    path: /^\/v4\/tags\/\d+\/subscribers$/,
    done: { status: 201, body: { subscriber: { id: 7 } } },
    id: ({ json }: Received) => json.email_address,
  },
} as const
providerContract(kit)

const { started, rows, answers, contradictions } = vendorTable(kit)
const plato = contactOf('plato@example.com', { name: 'Plato' })
const known = { ...ada, providerId: '1' }
const [FIND, CREATE] = [`GET /v4/subscribers?email_address=${ada.email}&status=all`, 'POST /v4/subscribers']
const findPlato = FIND.replace('ada', 'plato')
const TAG = ['POST /v4/tags/175/subscribers/1', {}] as const
const SEQUENCE = ['POST /v4/sequences/301/subscribers/1', {}] as const

rows({
  'an address is looked for in every state, then sent with the first name': {
    calls: [
      [create(), { is: 'created', providerId: '1' }, FIND, [CREATE, { email_address: ada.email, first_name: 'Ada' }]],
      [start(), 'delivered', ['POST /v4/tags/175/subscribers', { email_address: ada.email }]],
    ],
  },
  'the rest of the name and constants go into custom fields': {
    set: kitFields,
    calls: [
      [
        create(),
        'created',
        FIND,
        [
          CREATE,
          {
            email_address: ada.email,
            first_name: 'Ada',
            fields: { source: 'landing page', last_name: 'King Lovelace' },
          },
        ],
      ],
      [
        create(plato),
        'created',
        findPlato,
        [CREATE, { email_address: plato.email, first_name: 'Plato', fields: { source: 'landing page' } }],
      ],
    ],
  },
  'a field for the rest of the name is not sent for a name without a rest': {
    set: { KIT_LAST_NAME_FIELD: 'last_name' },
    calls: [[create(plato), 'created', findPlato, [CREATE, { email_address: plato.email, first_name: 'Plato' }]]],
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
  'without a tag and a sequence there is no automation': {
    set: { KIT_TAG_ID: '' },
    calls: [[async ({ automation }) => automation, null]],
  },
  'the sequence alone starts the automation': {
    set: { KIT_TAG_ID: '', ...kitSequence },
    calls: [
      [create(), 'created'],
      [start(known), 'delivered', SEQUENCE],
    ],
  },
  'the tag and the sequence start the automation, the tag first': {
    set: kitSequence,
    calls: [
      [create(), 'created'],
      [start(known), 'delivered', TAG, SEQUENCE],
    ],
  },
  'an inactive sequence refuses': {
    set: kitInactiveSequence,
    calls: [
      [create(), 'created'],
      [start(known), 'refused'],
    ],
  },
  'a subscriber that is not there is our mistake': { calls: [[start(known), 'misconfigured']] },
  'the check looks for all of it': {
    set: { ...kitSequence, ...kitJoined, ...kitFields },
    calls: [
      [
        check,
        null,
        'GET /v4/account',
        'GET /v4/tags/175/subscribers?per_page=1',
        'GET /v4/sequences/301/subscribers?per_page=1',
        'GET /v4/tags/181/subscribers?per_page=1',
        'GET /v4/tags/182/subscribers?per_page=1',
        'GET /v4/forms/217/subscribers?per_page=1',
        'GET /v4/custom_fields',
      ],
    ],
  },
  'a 429, which is plain text and does not say how long, asks for a minute': {
    says: { status: 429, body: 'Retry later', headers: { 'content-type': 'text/plain' } },
    calls: [[waitAfter(create()), 60_000]],
  },
})

const missing: readonly (readonly [Record<string, string>, RegExp])[] = [
  [{ KIT_TAG_ID: '176' }, /tag 176 of KIT_TAG_ID:/],
  [{ KIT_TAG_IDS: '181,176' }, /tag 176 of KIT_TAG_IDS:/],
  [{ KIT_SEQUENCE_ID: '176' }, /sequence 176 of KIT_SEQUENCE_ID:/],
  [{ KIT_FORM_ID: '176' }, /form 176 of KIT_FORM_ID:/],
  [{ KIT_LAST_NAME_FIELD: 'surname' }, /there is no surname$/],
  [{ KIT_FIELDS: 'sauce=landing page,source=x,age=7' }, /there is no sauce, age$/],
]
for (const [set, why] of missing) {
  rows({ [`the check names what is not there of ${JSON.stringify(set)}`]: { set, calls: [[check, why]] } })
}

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

contradictions([
  [{ KIT_TAG_IDS: '181,175' }, /^KIT_TAG_IDS must not have the tag of KIT_TAG_ID/],
  [{ KIT_LAST_NAME_FIELD: 'source', KIT_FIELDS: 'source=x' }, /^KIT_FIELDS must not have the field/],
  [{ KIT_FIELDS: 'source=x,source=y' }, /^KIT_FIELDS must be a list/],
])

const page = kitReferrer.KIT_REFERRER_URL
const full = `${page}&utm_source=news+letter&ref=ada`
const fromNews = { ...ada, source: { utm_source: 'news letter', ref: 'ada' } }
for (const [contact, refuses, is, ...sent] of [
  [ada, 'nothing', 'created', page],
  [fromNews, 'nothing', 'created', full],
  [fromNews, 'news', 'created', full, page],
  [ada, 'launch', 'misconfigured', page],
] as const) {
  test(`the form is told ${sent.join(', then ')} if Kit refuses ${refuses} in it`, async t => {
    const { server, provider } = await started(t, { ...kitFormWithout, ...kitReferrer }, ({ json }) =>
      json?.referrer?.includes(refuses) ? refusing('No') : undefined,
    )
    assert.equal((await provider.createContact(contact, false, never)).is, is)
    assert.deepEqual(
      server.received.slice(2).map(({ json }) => json.referrer),
      sent,
    )
  })
}

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

test('what one step of a start had already done is not done twice when the other failed', async t => {
  const { fake, server, provider } = await started(t, kitSequence)
  await provider.createContact(ada, false, never)
  server.next(null, '500 before')
  assert.equal((await provider.automation!.deliver(eventOf(known), never)).is, 'unclear')
  assert.deepEqual(await provider.automation!.deliver(eventOf(known), never), { is: 'delivered' })
  assert.equal(fake.starts(ada.email), 2)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, eventOf, providerContract } from '../contracts/provider.ts'
import type { Received } from '../harness/receiver.ts'
import { plunkError, plunkFake, plunkInvalid, plunkSettings, plunkUsedKey } from './plunk.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const plunk = {
  vendor: 'plunk',
  settings: plunkSettings,
  wrongKey: { PLUNK_SECRET_KEY: 'sk_another', PLUNK_PUBLIC_KEY: 'pk_another' },
  fake: plunkFake,
  refused: 'refused@example.com',
  sources: { contact: within('data') },
  start: {
    path: /^\/v1\/track$/,
    done: { status: 200, body: { success: true, data: { contact: 'c', event: 'e', timestamp: 't' } } },
    id: ({ headers }: Received) => headers['idempotency-key'],
  },
} as const
providerContract(plunk)

const { started, rows, answers, contradictions } = vendorTable(plunk)
const { email } = ada
const bob = contactOf('bob@example.com', { name: 'Bob' })
const old = contactOf('old@example.com')
const LOOK = 'POST /contacts/lookup'
const FIND = `GET /contacts?search=${email}&limit=20`
const full = { firstName: 'Ada', lastName: 'King Lovelace' }
const theirs = { is: 'existing', providerId: 'old-1', ours: false }

rows({
  'what is sent': {
    calls: [
      [check, null, 'GET /contacts?limit=1'],
      [create(), 'created', [LOOK, { emails: [email] }], ['POST /contacts', { email, data: full }]],
      [create(bob), 'created', LOOK, ['POST /contacts', { email: bob.email, data: { firstName: 'Bob' } }]],
      [start(), 'delivered', ['POST /v1/track', { event: 'waitlist.joined', email }]],
    ],
    keeps: { subscribed: true, data: full },
  },
  'an address that is known costs one call, and two when there is doubt': {
    had: email,
    calls: [
      [create(), { is: 'existing' }, LOOK],
      [createAgain(), theirs, LOOK, FIND],
    ],
  },
  'a longer address that contains ours is not taken for ours': {
    had: email,
    calls: [
      [create(contactOf(`not-${email}`)), 'created'],
      [createAgain(), theirs],
    ],
  },
  'the event changes nothing of a contact': {
    had: email,
    calls: [[start(), 'delivered']],
    keeps: { data: { firstName: 'Old' }, subscribed: false },
  },
  'a contact that many newer addresses hide is to be deleted by hand': {
    had: [email, ...Array.from({ length: 20 }, (_, i) => `${i}${email}`)],
    calls: [
      [remove(), 'by hand', LOOK, FIND],
      [remove(`19${email}`), 'removed'],
      [remove(), 'removed'],
    ],
    afterwards: fake => assert.equal(fake.count(`0${email}`), 1),
  },
})

// It is sent with a new contact alone; unset, Plunk decides.
for (const [setting, sent] of [
  ['false', { subscribed: false }],
  ['true', { subscribed: true }],
  ['', {}],
] as const) {
  rows({
    [`PLUNK_SUBSCRIBED=${setting} is for a new contact`]: {
      set: { PLUNK_SUBSCRIBED: setting, PROVIDER_EXISTING: 'join' },
      had: old.email,
      calls: [
        [create(), 'created', LOOK, ['POST /contacts', { email, data: full, ...sent }]],
        [create(old), 'existing', LOOK],
        [start(), 'delivered', ['POST /v1/track', { event: 'waitlist.joined', email }]],
      ],
    },
  })
}

test('each of the two keys is for its own calls, and an event has its own id', async t => {
  const { server, provider } = await started(t)
  await provider.createContact(ada, false, never)
  await provider.automation!.deliver(eventOf(ada), never)
  const [secret, key] = ['Bearer sk_of-the-test', undefined]
  assert.deepEqual(
    server.received.map(({ headers }) => [headers.authorization, headers['idempotency-key']]),
    [
      [secret, key],
      [secret, key],
      ['Bearer pk_of-the-test', eventOf(ada).id],
    ],
  )
})

test('made by somebody else between look-up and creation: existing, and ours when it is young', async t => {
  for (const doubt of [false, true]) {
    const { fake, provider } = await started(t, {}, asked => {
      if (asked.path !== '/contacts/lookup') return undefined
      const said = fake.answer(asked)
      fake.answer({ ...asked, path: '/contacts', segments: ['', 'contacts'], json: { email } })
      return said
    })
    const expected = { is: 'existing', providerId: 'contact-1' }
    assert.deepEqual(await provider.createContact(ada, doubt, never), doubt ? { ...expected, ours: true } : expected)
  }
})

const senseless = [{}, { found: [], notFound: [] }, { found: [email], notFound: [email] }]
for (const body of senseless) {
  rows({
    [`nothing is created after the look-up ${JSON.stringify(body)}`]: {
      says: { status: 200, body },
      calls: [[create(), 'unreached', LOOK]],
    },
  })
}

// A project that has used up its plan is out for a while.
const said = [
  [plunkError(402, 'BILLING_LIMIT_EXCEEDED'), 'unreached', 'unreached'],
  [plunkError(403, 'PROJECT_DISABLED'), 'misconfigured', 'misconfigured'],
  [plunkError(404, 'NOT_FOUND'), 'misconfigured', 'misconfigured'],
  [{ status: 400, body: { error: 'Email is required' } }, 'misconfigured', 'refused'],
  [plunkError(409, 'CONFLICT'), 'misconfigured', 'misconfigured'],
  [plunkInvalid('data'), 'misconfigured', 'refused'],
  [plunkInvalid('email'), 'refused', 'refused'],
] as const
for (const [answer, creation, event] of said) {
  const checked = event === 'refused' ? 'misconfigured' : event
  rows({
    [`${JSON.stringify(answer.body)} is ${creation} to a creation, ${event} to an event, ${checked} to the check`]: {
      says: ({ path }) => (path.endsWith('/lookup') ? undefined : answer),
      calls: [
        [create(), creation],
        [start(), event],
        [check, checked],
      ],
    },
  })
}

// What was started is not started again; what failed keeps its key for a day, unless by a 4xx.
answers('a start', start(), [
  [plunkUsedKey(200), 'delivered'],
  [plunkUsedKey(null), 'unclear'],
  [plunkUsedKey(500), 'refused'],
])

contradictions([
  ...['email.sent', 'contact.subscribed', 'contact.unsubscribed', 'segment.beta.entry'].map(
    name => [{ EVENT_NAME: name }, /^EVENT_NAME must not be one of Plunk itself/] as const,
  ),
  [{ EVENT_NAME: 'email' }, null],
])

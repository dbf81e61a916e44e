import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoopsClient } from 'loops'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, eventOf, providerContract } from '../contracts/provider.ts'
import type { Received } from '../harness/receiver.ts'
import { withFetchTo } from '../harness/wire.ts'
import { loopsFake, loopsMore, loopsSettings } from './loops.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const loops = {
  vendor: 'loops',
  settings: loopsSettings,
  wrongKey: { LOOPS_API_KEY: 'another-key' },
  fake: loopsFake,
  joining: { settings: loopsMore, members: ['mailingLists'] },
  sources: [{ event: within('eventProperties'), givesWay: 'LOOPS_EVENT_PROPERTIES' }],
  refused: 'refused@example.com',
  start: {
    path: /^\/api\/v1\/events\/send$/,
    done: { status: 200, body: { success: true } },
    id: ({ headers }: Received) => headers['idempotency-key'],
  },
} as const
providerContract(loops)

const { started, rows, answers, sameRequests, contradictions } = vendorTable(loops)
const join = { PROVIDER_EXISTING: 'join' }

sameRequests('with every setting', {
  set: { ...loopsMore, ...join },
  ours: [
    [check, null],
    [create(), 'created'],
    [createAgain(), 'existing'],
    [create(), 'existing'],
    [start(), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  theirs: url =>
    withFetchTo(url, async () => {
      const client = new LoopsClient(loopsSettings('').LOOPS_API_KEY)
      const { email } = ada
      const mailingLists = { 'list-1': true, 'list-2': true }
      const name = { firstName: 'Ada', lastName: 'King Lovelace' }
      const more = { source: 'waitlist', userGroup: 'Early adopters', planName: 'free', heardOf: 'landing page' }
      const contact = { email, properties: { ...name, ...more }, mailingLists }
      const headers = { 'Idempotency-Key': eventOf(ada).id }
      await client.testApiKey()
      await client.listMailingLists()
      await client.listContactProperties('custom')
      await client.createContact(contact)
      await client.createContact(contact).catch(() => {})
      await client.findContact({ email })
      await client.createContact(contact).catch(() => {})
      await client.updateContact({ email, mailingLists })
      await client.sendEvent({ email, eventName: 'waitlist.joined', eventProperties: { campaign: 'launch' }, headers })
      await client.deleteContact({ email })
      await client.deleteContact({ email }).catch(() => {})
    }),
  headers: ['authorization', 'idempotency-key'],
})

const name = { email: 'ada@example.com', firstName: 'Ada', lastName: 'King Lovelace', source: 'waitlist' }
const joined = { email: 'ada@example.com', eventName: 'waitlist.joined' }

rows({
  'nothing is sent of what is not set': {
    set: join,
    calls: [
      [check, null, 'GET /api/v1/api-key'],
      [create(), 'created', ['POST /api/v1/contacts/create', name]],
      [create(), 'existing', ['POST /api/v1/contacts/create', name]],
      [start(), 'delivered', ['POST /api/v1/events/send', joined]],
    ],
  },
  'who has unsubscribed from everything joins the lists, and stays unsubscribed': {
    set: { ...loopsMore, ...join },
    had: ada.email,
    calls: [[create(), 'existing']],
    keeps: {
      subscribed: false,
      userGroup: 'Customers',
      mailingLists: { 'list-0': true, 'list-1': true, 'list-2': true },
    },
  },
  'the check names a mailing list that is not there': {
    set: { LOOPS_MAILING_LISTS: 'list-1,list-3' },
    calls: [[check, /mailing lists: there is no list-3$/, 'GET /api/v1/api-key', 'GET /api/v1/lists']],
  },
  'the check names a property that is not there': {
    set: { LOOPS_CONTACT_PROPERTIES: 'planName=a,colour=b' },
    calls: [[check, /of type string: there is no colour$/]],
  },
  'the check names a property of another type': {
    set: { LOOPS_CONTACT_PROPERTIES: 'seats=7' },
    calls: [[check, /of type string: there is no seats$/]],
  },
})

answers('a removal', remove(), [
  [{ status: 200, body: { success: true, message: 'Contact deleted.' } }, 'removed'],
  [{ status: 200, body: { success: false, message: 'Nothing was done.' } }, 'unclear'],
  [{ status: 404, body: { success: false, message: 'Contact not found.' } }, 'absent'],
  [{ status: 404, body: { message: 'Not found.' } }, 'misconfigured'],
])

// What is Loops' own could set somebody's consent.
contradictions(
  ['subscribed', 'email', 'mailingLists'].map(name => [
    { LOOPS_CONTACT_PROPERTIES: `planName=a,${name}=true` },
    new RegExp(`^LOOPS_CONTACT_PROPERTIES .*: ${name} is`),
  ]),
)

test('a visitor goes before the backlog, in what it leaves free of the rate', async t => {
  const { server, provider } = await started(t)
  const stop = new AbortController()
  const backlog = Array.from({ length: 12 }, (_, i) =>
    provider.createContact(contactOf(`waiting-${i}@example.com`), false, stop.signal, () => true, false),
  )
  assert.equal((await provider.createContact(ada, false, never)).is, 'created')
  stop.abort()
  await Promise.all(backlog)
  const place = server.received.findIndex(({ json }) => json.email === ada.email)
  assert.ok(place >= 0 && place <= 2, String(place))
})

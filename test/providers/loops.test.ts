import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, providerContract } from '../contracts/provider.ts'
import type { Received } from '../harness/receiver.ts'
import { loopsFake, loopsMore, loopsSettings } from './loops.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const loops = {
  vendor: 'loops',
  settings: loopsSettings,
  wrongKey: { LOOPS_API_KEY: 'another-key' },
  fake: loopsFake,
  joining: { settings: loopsMore, members: ['mailingLists'] },
  sources: { event: within('eventProperties') },
  refused: 'refused@example.com',
  start: {
    path: /^\/api\/v1\/events\/send$/,
    done: { status: 200, body: { success: true } },
    id: ({ headers }: Received) => headers['idempotency-key'],
  },
} as const
providerContract(loops)

const { started, rows, answers, sameRequests, missing } = vendorTable(loops)
const joins = { PROVIDER_EXISTING: 'join' }

sameRequests('with every setting', {
  set: { ...loopsMore, ...joins },
  ours: [
    [check, null],
    [create(), 'created'],
    [createAgain(), 'existing'],
    [create(), 'existing'],
    [start(), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  headers: ['authorization', 'idempotency-key'],
})

const name = { email: 'ada@example.com', firstName: 'Ada', lastName: 'King Lovelace', source: 'waitlist' }
const joined = { email: 'ada@example.com', eventName: 'waitlist.joined' }

rows({
  'nothing is sent of what is not set': {
    set: joins,
    calls: [
      [check, null, 'GET /api/v1/api-key'],
      [create(), 'created', ['POST /api/v1/contacts/create', name]],
      [create(), 'existing', ['POST /api/v1/contacts/create', name]],
      [start(), 'delivered', ['POST /api/v1/events/send', joined]],
    ],
  },
  'who has unsubscribed from everything joins the lists, and stays unsubscribed': {
    set: { ...loopsMore, ...joins },
    had: ada.email,
    calls: [[create(), 'existing']],
    keeps: {
      subscribed: false,
      userGroup: 'Customers',
      mailingLists: { 'list-0': true, 'list-1': true, 'list-2': true },
    },
  },
})

missing([[{ LOOPS_MAILING_LISTS: 'list-1,list-3' }, /mailing lists: there is no list-3$/]])

answers('a removal', remove(), [
  [{ status: 200, body: { success: true, message: 'Contact deleted.' } }, 'removed'],
  [{ status: 200, body: { success: false, message: 'Nothing was done.' } }, 'unclear'],
  [{ status: 404, body: { success: false, message: 'Contact not found.' } }, 'absent'],
  [{ status: 404, body: { message: 'Not found.' } }, 'misconfigured'],
])

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

import assert from 'node:assert/strict'
import { join as joinPath } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { VendorName } from '../../src/providers/list.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { handOver } from '../../src/waitlist/delivery/handover.ts'
import { join } from '../../src/waitlist/join.ts'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, opened, PATIENT, providerContract } from '../contracts/provider.ts'
import { signup } from '../contracts/store.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type Misbehaviour, type Received, startReceiver } from '../harness/receiver.ts'
import { recordingLog } from '../harness/service.ts'
import { loopsFake, loopsMore, loopsSettings } from './loops.fake.ts'
import { plunkFake, plunkSettings } from './plunk.fake.ts'
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

test('an attempt that took effect unheard is not forgotten while another provider is set', async t => {
  const path = joinPath(temporaryFolder(t), 'waitlist.db')
  const loops = loopsFake()
  const plunk = plunkFake()
  const atLoops = await startReceiver(t, loops.answer)
  const atPlunk = await startReceiver(t, plunk.answer)
  const settings: Partial<Record<VendorName, Record<string, string>>> = {
    loops: loopsSettings(atLoops.url),
    plunk: plunkSettings(atPlunk.url),
  }

  /** The service from its start to its stop: she signs up, and what `met` says happens to the call. */
  async function once(test: TestContext, vendor: VendorName, server: typeof atLoops, met: readonly Misbehaviour[]) {
    const provider = await opened(test, { vendor }, settings[vendor]!)
    const store = await sqliteStore({ path, eventName: 'waitlist.joined', provider: vendor, destinations: [] })
    const announce = () => {}
    const handing = handOver({ store, log: recordingLog().log, announce, provider })
    server.next(...met)
    const parts = {
      store,
      handOver: handing,
      timeout: PATIENT,
      inBackground: null,
      signal: never,
      announce,
    }
    const told = await join(signup('Ada Lovelace', ada.email), parts)
    await store.close()
    return told.is
  }

  assert.equal(await once(t, 'loops', atLoops, ['reset after']), 'kept')
  assert.equal(loops.count(ada.email), 1, 'it took effect')
  assert.equal(await once(t, 'plunk', atPlunk, ['500 before']), 'kept')
  assert.equal(await once(t, 'loops', atLoops, []), 'new')
  const [contact, ...others] = contactsIn(path)
  assert.deepEqual([contact?.state, contact?.events, others.length], ['listed', 1, 0])
})

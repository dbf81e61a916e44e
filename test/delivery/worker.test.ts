import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { DeliveryResult, Destination } from '../../src/delivery/destination.ts'
import { eventWorker } from '../../src/delivery/events.ts'
import type { WaitlistEvent } from '../../src/signup/contact.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import { replay } from '../../src/store/deliveries.ts'
import type { Store } from '../../src/store/store.ts'
import { withDatabase } from '../harness/database.ts'
import { quickFolder } from '../harness/folder.ts'
import { keptLog } from '../harness/log.ts'
import { until } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { forEachEngine, signup } from '../store/place.ts'

const DAY = 86_400_000
const why = 'as the test wants it'
const delivered: DeliveryResult = { is: 'delivered' }

type Answer = (event: WaitlistEvent, signal: AbortSignal) => DeliveryResult | Promise<DeliveryResult>

/** A webhook that answers as the test wants it, with nobody on the list yet. */
async function stage(t: TestContext, answer: Answer, more: Partial<Destination> = {}) {
  const path = join(quickFolder(t), 'waitlist.db')
  const clock = { ahead: 0 }
  const store = await storeAt(path, { destinations: ['webhook'], clock: () => Date.now() + clock.ahead })
  t.after(() => store.close())
  const { log, lines } = keptLog()
  const received: string[] = []
  const destination: Destination = {
    ...{ name: 'webhook', events: ['joined', 'invited'], repeatable: Number.POSITIVE_INFINITY, concurrency: 4 },
    async deliver(event, signal) {
      received.push(event.id)
      return answer(event, signal)
    },
    ...more,
  }
  const parts = {
    store: store as Pick<Store, 'claim' | 'settle'>,
    log,
    announce: () => assert.fail('an event makes none'),
  }
  return {
    ...{ store, clock, lines, received },
    worker: (with_: Partial<typeof parts> = {}) => eventWorker(destination, 'the webhook', { ...parts, ...with_ }),
    joins: (count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => store.admit(signup('Ada Lovelace', `${i}@example.com`)))),
    rows: () =>
      withDatabase(path, database =>
        database
          .prepare('select state, attempts, why from delivery order by number')
          .all()
          .map(row => ({ ...row })),
      ),
  }
}

test('a backlog is delivered once each, as many at once as may be, without a pause; and new events soon after', async t => {
  let [inFlight, most] = [0, 0]
  const here = await stage(t, async () => {
    most = Math.max(most, ++inFlight)
    await new Promise(resolve => setTimeout(resolve, 5))
    inFlight--
    return delivered
  })
  await here.joins(50)
  const { claim, settle } = here.store
  const slowClaim: typeof claim = async (...all) => {
    await new Promise(resolve => setTimeout(resolve, 20))
    return claim(...all)
  }
  const timers = t.mock.method(globalThis, 'setTimeout')
  const worker = here.worker({ store: { claim: slowClaim, settle } })
  worker.start()
  await until(() => here.received.length === 50)
  assert.ok(timers.mock.calls.filter(call => call.arguments[1] === 1_000).length <= 1, 'it does not wait for a poll')
  await here.store.admit(signup('Eve', 'eve@example.com'))
  worker.wake()
  await until(() => here.received.length === 51)
  await worker.stop(1_000)
  assert.deepEqual([new Set(here.received).size, most], [51, 4])
  assert.ok(here.rows().every(({ state }) => state === 'delivered'))
})

test('an event that fails while others arrive is tried ten times in three days, abandoned, and replayed', async t => {
  const here = await stage(t, ({ contact }) => (contact.email.startsWith('0') ? { is: 'unreachable', why } : delivered))
  await here.joins(2)
  const worker = here.worker()
  let attempts = 0
  for (; here.rows()[0]!.state === 'waiting'; attempts++) {
    await here.store.admit(signup('Eve', `eve-${attempts}@example.com`))
    assert.ok((await worker.once()) >= 2)
    here.clock.ahead += 1.2 * DAY
  }
  assert.equal(attempts, 10)
  assert.deepEqual(here.rows()[0], { state: 'abandoned', attempts: 10, why: `${why}; that was the last attempt` })
  await here.store.transaction(tx => replay(tx, [1]))
  assert.equal(await worker.once(), 1)
  assert.deepEqual(new Set(here.received.filter(id => id === here.received[0])).size, 1, 'under the same id')
  assert.ok(here.lines.some(({ message }) => message === 'deliveries were abandoned; they can be replayed'))
})

for (const [repeatable, age, state] of [
  [0, 0, 'abandoned'],
  [DAY, 0, 'waiting'],
  [DAY, -2 * DAY, 'abandoned'],
] as const) {
  test(`in doubt, recognised for ${repeatable / DAY} days and ${-age / DAY} days old: it is ${state}`, async t => {
    const here = await stage(t, () => ({ is: 'in doubt', why }), { repeatable })
    here.clock.ahead = age
    await here.joins(1)
    here.clock.ahead = 0
    await here.worker().once()
    assert.equal(here.rows()[0]!.state, state)
  })
}

test('what is refused is abandoned; no attempt of an outage counts, and the log has one line of it', async t => {
  const here = await stage(t, ({ contact }) =>
    contact.email.startsWith('0@') ? { is: 'refused', why: 'too long' } : { is: 'unreachable', why },
  )
  await here.joins(10)
  const worker = here.worker()
  while ((await worker.once()) > 0);
  // Probes meet the outage again and again.
  const { now } = performance
  for (let minutes = 1; minutes <= 120; minutes++) {
    t.mock.method(performance, 'now', () => now.call(performance) + minutes * 60_000)
    here.clock.ahead = minutes * 60_000
    await worker.once()
  }
  assert.deepEqual(here.rows()[0], { state: 'abandoned', attempts: 1, why: 'too long' })
  assert.ok(here.received.length < 130, 'an outage is noted in the breaker, and not in each row')
  assert.ok(here.rows().every(({ attempts }) => Number(attempts) <= 1))
  assert.equal(here.lines.filter(({ message }) => message.includes('does not answer')).length, 1)
})

test('an outcome that the store refuses is offered again, and nothing is claimed until then', async t => {
  const here = await stage(t, () => delivered)
  await here.joins(8)
  let refusals = 5
  const { store } = here
  const settle: Store['settle'] = async (...all) => {
    if (refusals-- > 0) throw new StoreUnavailable(why)
    return store.settle(...all)
  }
  const worker = here.worker({ store: { claim: store.claim, settle } })
  await worker.once()
  assert.ok(here.rows().filter(({ state }) => state === 'delivered').length === 4)
  assert.equal(here.received.length, 4)
})

test('a stop claims nothing more, and cuts off what does not end in time', async t => {
  const here = await stage(t, (_, signal) => {
    return new Promise(resolve => signal.addEventListener('abort', () => resolve({ is: 'in doubt', why })))
  })
  await here.joins(8)
  const worker = here.worker()
  worker.start()
  await until(() => here.received.length === 4)
  await worker.stop(10)
  assert.equal(here.received.length, 4)
  assert.deepEqual(new Set(here.rows().map(({ state }) => state)), new Set(['waiting']))
})

forEachEngine('deliveries to one destination', place => {
  test('confirmations go before welcomes, and those before invitations', async t => {
    const here = await place(t)
    const before = await here.open({ destinations: ['mail'] })
    for (const name of ['Ada', 'Grace']) await before.admit(signup(name, `${name}@example.com`))
    await here.operator.invite({}, 2, { eventName: 'waitlist.invited', destinations: ['mail'] })
    await here.sql("update delivery set due_at = 0 where kind = 'invited'")
    await before.close()
    const store = await here.open({ destinations: ['mail'], confirmation: 'mail' })
    await store.admit(signup('Eve', 'eve@example.com'))
    const claimed = [...(await store.claim('mail', 2)), ...(await store.claim('mail', 10))]
    assert.deepEqual(
      claimed.map(({ kind, contact: { name } }) => [kind, name]),
      [
        ['confirmation', 'Eve'],
        ['joined', 'Ada'],
        ['joined', 'Grace'],
        ['invited', 'Ada'],
        ['invited', 'Grace'],
      ],
    )
  })
})

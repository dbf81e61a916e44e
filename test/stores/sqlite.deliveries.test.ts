import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { DeliveryFilter } from '../../src/stores/records.ts'
import { backlog, listDeliveries, replayDeliveries, showDelivery } from '../../src/stores/sqlite/deliveries.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { CannotOpen, LEASE, type Store } from '../../src/waitlist/ports.ts'
import { handClock, opened, pendingNow, signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'

const destinations = ['webhook', 'crm']
const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const

/** An open store with a clock of the test's own, and its file. */
async function busyStore(t: TestContext, provider?: string) {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const clock = handClock()
  const options = { path, eventName: 'waitlist.joined', minimumFree: 0, clock: clock.read, destinations }
  const open = () => sqliteStore({ ...options, ...(provider === undefined ? {} : { provider }) })
  const store = await opened({ open, probe: { impossible: 'not needed' } }, t)
  const joined = async (who: string) => {
    await store.admit(signup(who, `${who}@example.com`))
    clock.pass(1)
  }
  return { path, clock, store, joined }
}

async function settleAll(
  store: Store,
  destination: string,
  settlement: Parameters<Store['settle']>[1],
): Promise<number> {
  const claimed = await store.claim(destination, 10_000)
  await Promise.all(claimed.map(each => store.settle(each, settlement)))
  return claimed.length
}

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CannotOpen, String(error))
  assert.match(error.message, sentence)
  return true
}

describe('reading deliveries beside an open store', { concurrency: true, timeout: 60_000 }, () => {
  test('the newest come first; state, destination and limit say which', async t => {
    const { path, clock, store, joined } = await busyStore(t)
    for (const who of ['ada', 'bob', 'cyd']) await joined(who)
    const born = clock.read() - 3
    const [first, second] = await store.claim('webhook', 2)
    await store.settle(first!, { is: 'delivered' })
    await store.settle(second!, abandoned)
    const numbers = (filter: Partial<DeliveryFilter>) =>
      listDeliveries(path, { limit: 50, ...filter }).map(({ number }) => number)
    assert.deepEqual(numbers({}), [6, 5, 4, 3, 2, 1])
    assert.deepEqual(numbers({ limit: 2 }), [6, 5])
    assert.deepEqual(numbers({ state: 'waiting' }), [6, 5, 4, 2])
    assert.deepEqual(numbers({ state: 'waiting', destination: 'crm', limit: 2 }), [6, 4])
    assert.deepEqual(numbers({ state: 'delivered' }), [1])
    assert.deepEqual(numbers({ state: 'abandoned' }), [3])
    assert.deepEqual(numbers({ state: 'abandoned', destination: 'crm' }), [])
    assert.deepEqual(numbers({ destination: 'nobody' }), [])

    const { id } = second!.event.contact
    const settledAt = new Date(clock.read())
    assert.deepEqual(listDeliveries(path, { state: 'abandoned', limit: 50 }), [
      {
        ...{ number: 3, eventId: `evt_${id}`, contactId: id, destination: 'webhook', state: 'abandoned', attempts: 1 },
        ...{ due: settledAt, why: 'HTTP 404', settledAt },
      },
    ])
    const [waits] = listDeliveries(path, { state: 'waiting', destination: 'crm', limit: 50 }).slice(-1)
    assert.deepEqual([waits?.due, waits?.why, waits?.settledAt, waits?.attempts], [new Date(born), null, null, 0])
  })

  test('one is shown with its event, as the destination is told it', async t => {
    const { path, store } = await busyStore(t, 'provider')
    await store.conclude(await pendingNow(store, 'Ada@example.com'), { is: 'created', providerId: 'p-1' })
    const [claimed] = await store.claim('crm', 1)
    const shown = showDelivery(path, claimed!.number)
    assert.deepEqual(shown?.event, claimed!.event)
    assert.deepEqual(shown?.record, listDeliveries(path, { destination: 'crm', limit: 1 })[0])
    assert.equal(showDelivery(path, 99), undefined)
  })

  test('the backlog counts what has not come to its end', async t => {
    const { path, store } = await busyStore(t, 'provider')
    assert.deepEqual(backlog(path), { pending: 0, waiting: {}, abandoned: 0 })
    for (const who of ['ada', 'bob', 'cyd']) {
      await store.conclude(await pendingNow(store, `${who}@example.com`), { is: 'created' })
    }
    await pendingNow(store, 'dot@example.com')
    await store.settle((await store.claim('webhook', 1))[0]!, abandoned)
    await store.settle((await store.claim('crm', 1))[0]!, { is: 'delivered' })
    assert.deepEqual(backlog(path), { pending: 1, waiting: { crm: 2, webhook: 2 }, abandoned: 1 })
    assert.deepEqual(backlog(`${path}.none`), { pending: 0, waiting: {}, abandoned: 0 })
  })
})

describe('replaying deliveries beside an open store', { concurrency: true, timeout: 60_000 }, () => {
  test('what is replayed is as new, and due now, whatever came of it before', async t => {
    const { path, clock, store, joined } = await busyStore(t)
    for (const who of ['ada', 'bob', 'cyd']) await joined(who)
    const [one, two, three] = await store.claim('webhook', 3)
    await store.settle(one!, abandoned)
    await store.settle(two!, { is: 'delivered' })
    await store.settle(three!, { is: 'waiting', wait: 86_400_000, doubt: true, why: 'timed out' })
    const numbers = [one!.number, two!.number, three!.number]
    const replayed = replayDeliveries(path, { numbers: [...numbers, one!.number] }, clock.read())
    assert.deepEqual(replayed, { replayed: 3, underWay: [], unknown: [] })
    for (const { number, due, ...rest } of listDeliveries(path, { destination: 'webhook', limit: 9 })) {
      assert.ok(numbers.includes(number))
      assert.equal(due.getTime(), clock.read())
      assert.deepEqual([rest.state, rest.attempts, rest.why, rest.settledAt], ['waiting', 0, null, null])
    }
    const again = await store.claim('webhook', 9)
    assert.deepEqual(
      again.map(({ event }) => event),
      [one, two, three].map(each => each!.event),
    )
    assert.ok(again.every(({ attempts, doubt }) => attempts === 0 && !doubt))
    assert.equal((await store.claim('crm', 9)).length, 3, 'the others are untouched')
  })

  test('one that is under way is left alone; when its lease is over its old token is worth nothing', async t => {
    const { path, clock, store, joined } = await busyStore(t)
    await joined('ada')
    const [leased] = await store.claim('webhook', 1)
    const { number } = leased!
    clock.pass(LEASE - 1)
    const left = replayDeliveries(path, { numbers: [99, number, 2] }, clock.read())
    assert.deepEqual(left, { replayed: 1, underWay: [number], unknown: [99] })
    assert.deepEqual(await store.claim('webhook', 1), [])
    clock.pass(1)
    assert.equal(replayDeliveries(path, { numbers: [number] }, clock.read()).replayed, 1)
    assert.equal(await store.settle(leased!, { is: 'delivered' }), false)
    assert.deepEqual(
      (await store.claim('webhook', 1)).map(({ attempts, doubt }) => [attempts, doubt]),
      [[0, false]],
    )
  })

  test('all that are abandoned, or those to one destination; nothing else', async t => {
    const { path, clock, store, joined } = await busyStore(t)
    for (const who of ['ada', 'bob', 'cyd']) await joined(who)
    assert.equal(await settleAll(store, 'webhook', abandoned), 3)
    assert.equal(await settleAll(store, 'crm', abandoned), 3)
    await joined('dot')
    assert.equal(await settleAll(store, 'webhook', { is: 'delivered' }), 1)
    const now = clock.read()
    assert.equal(replayDeliveries(path, { abandoned: true, destination: 'nobody' }, now).replayed, 0)
    assert.equal(replayDeliveries(path, { abandoned: true, destination: 'crm' }, now).replayed, 3)
    assert.equal((await store.claim('webhook', 9)).length, 0)
    assert.equal((await store.claim('crm', 9)).length, 4)
    assert.equal(replayDeliveries(path, { abandoned: true }, now).replayed, 3)
    assert.equal((await store.claim('webhook', 9)).length, 3)
    assert.equal(replayDeliveries(path, { abandoned: true }, now).replayed, 0)
  })

  test('a great many are replayed while signups go on', async t => {
    const { path, clock, store } = await busyStore(t)
    const crowd = Array.from({ length: 6_000 }, (_, i) => store.admit(signup('Visitor', `visitor-${i}@example.com`)))
    await Promise.all(crowd)
    assert.equal(await settleAll(store, 'webhook', abandoned), 6_000)
    const more = Array.from({ length: 500 }, (_, i) => store.admit(signup('Later', `later-${i}@example.com`)))
    assert.equal(replayDeliveries(path, { abandoned: true }, clock.read()).replayed, 6_000)
    assert.ok((await Promise.all(more)).every(({ is }) => is === 'listed now'))
    assert.equal((await store.claim('webhook', 10_000)).length, 6_500)
  })

  test('without a database nothing is made', t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    assert.throws(() => replayDeliveries(path, { abandoned: true }), refused(/^There is no database at /))
    assert.throws(() => replayDeliveries(path, { numbers: [1] }), refused(/^There is no database at /))
    assert.equal(existsSync(path), false)
  })
})

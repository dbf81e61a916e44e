import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { OperatorError } from '../../src/config/operator.ts'
import { eventId } from '../../src/signup/contact.ts'
import type { DeliveryFilter } from '../../src/store/deliveries.ts'
import type { Settlement } from '../../src/store/outbox.ts'
import { course, DAY, emailsOf, forEachEngine, type MakePlace, numbersOf, type Place, pendingNow } from './place.ts'

const provider = 'provider'
const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const
const later = (wait: number, doubt: boolean): Settlement => ({
  is: 'retry',
  wait,
  doubt,
  why: 'HTTP 503',
  counts: true,
})

async function open(place: MakePlace, t: TestContext) {
  const here = await place(t)
  const store = await here.open({ provider, destinations: ['webhook', 'crm'] })
  return { ...here, store }
}

/** Three contacts are listed, so there are six deliveries; a fourth is pending, and being handed over. */
async function busy(place: MakePlace, t: TestContext) {
  const here = await open(place, t)
  for (const who of ['ada', 'bob', 'cyd'])
    await here.store.settle(await pendingNow(here.store, `${who}@example.com`), { is: 'listed', joined: true })
  await pendingNow(here.store, 'dot@example.com')
  return here
}

/** What a process that died leaves behind is due: a lease that has ended. */
const endLeases = ({ sql }: Pick<Place, 'sql'>) => sql('update delivery set due_at = 0 where token is not null')

/** What an operator sees of deliveries, and replays of them. */
forEachEngine('the operator', place => {
  test('deliveries: the newest first; state, destination and limit say which; and one with its contact', async t => {
    const { store, operator } = await busy(place, t)
    const [claimed] = await store.claim('webhook', 1)
    await store.settle(claimed!, abandoned)
    const [notified] = await store.claim('crm', 1)
    await store.settle(notified!, { is: 'delivered' })
    const all = await operator.deliveries({ limit: 50 })
    const numbers = all.map(({ number }) => number)
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => b - a),
    )
    assert.equal(all.length, 7)
    assert.deepEqual(await operator.deliveries({ limit: 2 }), all.slice(0, 2))
    for (const [expected, filter] of [
      [3, { destination: 'crm' }],
      [5, { state: 'waiting' }],
      [2, { state: 'waiting', destination: 'crm' }],
      [1, { state: 'waiting', destination: 'crm', limit: 1 }],
      [1, { state: 'delivered' }],
      [0, { state: 'abandoned', destination: 'crm' }],
      [0, { destination: 'nobody' }],
    ] satisfies [number, DeliveryFilter & { limit?: number }][]) {
      assert.equal((await operator.deliveries({ limit: 50, ...filter })).length, expected, JSON.stringify(filter))
    }
    const [given] = await operator.deliveries({ state: 'abandoned', destination: 'webhook', limit: 50 })
    const { due, settledAt, ...record } = given!
    const { number, contact } = claimed!
    assert.deepEqual(record, {
      number,
      contactId: contact.id,
      email: contact.email,
      kind: 'joined',
      eventId: eventId(contact, 'joined'),
      destination: 'webhook',
      state: 'abandoned',
      attempts: 1,
      why: 'HTTP 404',
    })
    assert.ok(Math.abs(Date.now() - settledAt!.getTime()) < 60_000)
    assert.ok(due instanceof Date)
  })

  test('what is replayed is as new, and due now, whatever came of it before', async t => {
    const { store, operator } = await busy(place, t)
    const [one, two, three] = await store.claim('webhook', 3)
    await store.settle(one!, abandoned)
    await store.settle(two!, { is: 'delivered' })
    await store.settle(three!, later(365 * DAY, true))
    const numbers = numbersOf([one!, two!, three!])
    assert.deepEqual(await operator.replay([...numbers, one!.number]), { replayed: 3, inFlight: [], unknown: [] })
    for (const { due, state, attempts, why, settledAt } of await operator.deliveries({
      destination: 'webhook',
      limit: 9,
    })) {
      assert.ok(due.getTime() <= Date.now() + 1_000)
      assert.deepEqual([state, attempts, why, settledAt], ['waiting', 0, null, null])
    }
    const again = await store.claim('webhook', 9)
    assert.deepEqual(numbersOf(again).sort(), numbers.toSorted())
    assert.ok(again.every(({ attempts, doubt }) => attempts === 0 && !doubt))
    for (const each of [one!, two!, three!])
      assert.equal(await store.settle(each, { is: 'delivered' }), false, 'an old token is worth nothing')
    assert.equal((await store.claim('crm', 9)).length, 3, 'the others are untouched')
  })

  test('the doubt about a hand-over stays when it is replayed, since the provider can be asked', async t => {
    const here = await open(place, t)
    const { store, operator } = here
    const [doubtful, clear, died] = await Promise.all(
      ['doubtful', 'clear', 'died'].map(who => pendingNow(store, `${who}@example.com`)),
    )
    await store.settle(doubtful!, later(20_000, true))
    await store.settle(clear!, later(20_000, false))
    await endLeases(here)
    assert.equal((await operator.replay(numbersOf([doubtful!, clear!, died!]))).replayed, 3)
    const again = (await store.claim(provider, 9)).map(({ contact, doubt, attempts }) => [
      contact.email,
      doubt,
      attempts,
    ])
    assert.deepEqual(again.sort(), [
      ['clear@example.com', false, 0],
      ['died@example.com', true, 0],
      ['doubtful@example.com', true, 0],
    ])
  })

  test('one that is in flight is left alone, and named; so is what does not exist', async t => {
    const here = await busy(place, t)
    const { store, operator } = here
    const [first, second] = await store.claim('webhook', 2)
    await store.settle(first!, abandoned)
    const numbers = [first!.number, second!.number, 999_999]
    assert.deepEqual(await operator.replay(numbers), { replayed: 1, inFlight: [second!.number], unknown: [999_999] })
    assert.equal(await store.settle(second!, { is: 'delivered' }), true, 'it holds its lease')

    // Its lease has ended: the process that had it died, and what came of it is the operator's decision.
    const died = (await store.claim('webhook', 9)).find(({ number }) => number === first!.number)!
    await endLeases(here)
    assert.equal((await operator.replay([died.number])).replayed, 1)
    assert.equal(await store.settle(died, { is: 'delivered' }), false)
    const again = (await store.claim('webhook', 9)).find(({ number }) => number === died.number)
    assert.deepEqual([again?.attempts, again?.doubt], [0, false])
  })

  test('all that are abandoned, or those to one destination; nothing else', async t => {
    const { store, operator } = await busy(place, t)
    for (const destination of ['webhook', 'crm']) {
      const [one, ...rest] = await store.claim(destination, 9)
      await store.settle(one!, { is: 'delivered' })
      for (const each of rest) await store.settle(each, abandoned)
    }
    assert.equal(await operator.replayAbandoned('nobody', course), 0)
    assert.equal(await operator.replayAbandoned('crm', course), 2)
    assert.deepEqual(await store.claim('webhook', 9), [])
    assert.deepEqual(emailsOf(await store.claim('crm', 9)).sort(), ['bob@example.com', 'cyd@example.com'])
    const looked: number[] = []
    assert.equal(await operator.replayAbandoned(undefined, { ...course, onProgress: n => looked.push(n) }), 2)
    assert.deepEqual(looked, [2])
    assert.equal((await store.claim('webhook', 9)).length, 2)
    assert.equal(await operator.replayAbandoned(undefined, course), 0)
  })

  test('the backlog counts what is not completed; the integrity check finds what a dead process has left', async t => {
    const here = await busy(place, t)
    const { store, operator } = here
    const [one, two] = await store.claim('webhook', 2)
    await store.settle(one!, abandoned)
    await store.settle(two!, later(DAY, false))
    await store.settle((await store.claim('crm', 1))[0]!, { is: 'delivered' })
    const waiting = { crm: 2, webhook: 2, [provider]: 1 }
    assert.deepEqual({ ...(await operator.backlog()) }, { unconfirmed: 0, pending: 1, waiting, abandoned: 1 })
    assert.match(await operator.describe(), /./)
    const { size, free, ...found } = await operator.checkIntegrity()
    assert.deepEqual(found, { damage: null, staleLeases: 0 })
    assert.ok(size > 10_000 && (free === null || free.bytes > 0))
    await endLeases(here)
    assert.equal((await operator.checkIntegrity()).staleLeases, 1)
  })

  test('where there is no list it says so', async t => {
    const { operator } = await place(t)
    const targets = { eventName: 'waitlist.joined', provider: null, destinations: [], confirmation: null }
    for (const call of [
      () => Array.fromAsync(operator.contacts({})),
      () => operator.replay([1]),
      () => operator.erase('ada@example.com'),
      () => operator.release({}, targets, course),
    ]) {
      await assert.rejects(call(), OperatorError, String(call))
    }
  })
})

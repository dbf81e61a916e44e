import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { OperatorError } from '../../src/config/operator.ts'
import { eventId } from '../../src/signup/contact.ts'
import type { DeliveryFilter } from '../../src/store/deliveries.ts'
import type { Settlement } from '../../src/store/outbox.ts'
import { DAY, emailsOf, forEachEngine, type MakePlace, numbersOf, type Place, pendingNow } from './place.ts'

const provider = 'provider'
const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const
const delivered = { is: 'delivered' } as const
const later = (doubt: boolean): Settlement => ({ is: 'retry', wait: DAY, doubt, why: 'HTTP 503', counts: true })

/** Three contacts are listed, so there are six deliveries; a fourth is pending, and being handed over. */
async function busy(place: MakePlace, t: TestContext) {
  const here = await place(t)
  const store = await here.open({ provider, destinations: ['webhook', 'crm'] })
  for (const who of ['ada', 'bob', 'cyd'])
    await store.settle(await pendingNow(store, `${who}@example.com`), { is: 'listed', joined: true })
  const handover = await pendingNow(store, 'dot@example.com')
  return { ...here, store, handover }
}

/** As if the processes that hold leases had died long ago. */
const endLeases = ({ sql }: Pick<Place, 'sql'>) => sql('update delivery set due_at = 0 where token is not null')

/** What an operator sees of deliveries, and replays of them. */
forEachEngine('the operator', place => {
  test('deliveries: the newest first; state, destination and limit say which', async t => {
    const { store, operator } = await busy(place, t)
    const [claimed] = await store.claim('webhook', 1)
    await store.settle(claimed!, abandoned)
    await store.settle((await store.claim('crm', 1))[0]!, delivered)
    const all = await operator.deliveries({ limit: 50 })
    assert.deepEqual(
      all,
      all.toSorted((a, b) => b.number - a.number),
    )
    assert.equal(all.length, 7)
    assert.deepEqual(await operator.deliveries({ limit: 2 }), all.slice(0, 2))
    for (const [expected, filter] of [
      [3, { destination: 'crm' }],
      [5, { state: 'waiting' }],
      [2, { state: 'waiting', destination: 'crm' }],
      [0, { state: 'abandoned', destination: 'crm' }],
    ] satisfies [number, DeliveryFilter][]) {
      assert.equal((await operator.deliveries({ limit: 50, ...filter })).length, expected, JSON.stringify(filter))
    }
    const [record] = await operator.deliveries({ state: 'abandoned', limit: 50 })
    const { number, contact } = claimed!
    const { id: contactId, email } = contact
    const known = { number, contactId, email, kind: 'joined', destination: 'webhook', state: 'abandoned' }
    const expected = { ...known, eventId: eventId(contact, 'joined'), attempts: 1, why: 'HTTP 404' }
    assert.deepEqual({ ...record, ...expected }, record)
    assert.ok(Math.abs(Date.now() - record!.settledAt!.getTime()) < 60_000)
  })

  test('what is replayed is as new and due now, whatever came of it; what is in flight or unknown is named', async t => {
    const here = await busy(place, t)
    const { store, operator } = here
    const [one, two, three] = await store.claim('webhook', 3)
    await store.settle(one!, abandoned)
    await store.settle(two!, later(true))
    const numbers = [...numbersOf([one!, two!, three!]), one!.number, 999_999]
    assert.deepEqual(await operator.replay(numbers), { replayed: 2, inFlight: [three!.number], unknown: [999_999] })
    assert.equal(await store.settle(three!, delivered), true, 'it keeps its lease')
    for (const each of [one!, two!]) assert.equal(await store.settle(each, delivered), false, 'its token is void')
    const again = await store.claim('webhook', 9)
    assert.deepEqual(numbersOf(again).sort(), numbersOf([one!, two!]).sort())
    assert.ok(again.every(({ attempts, doubt }) => attempts === 0 && !doubt))

    await endLeases(here)
    assert.equal((await operator.replay([one!.number])).replayed, 1)
    const [died] = again.filter(({ number }) => number === one!.number)
    assert.equal(await store.settle(died!, delivered), false)
    assert.equal((await store.claim('crm', 9)).length, 3, 'the others are untouched')
  })

  test('the doubt about a hand-over stays when it is replayed, since the provider can be asked', async t => {
    const here = await busy(place, t)
    const { store, operator, handover: died } = here
    const [doubtful, clear] = [await pendingNow(store, 'a@example.com'), await pendingNow(store, 'b@example.com')]
    await store.settle(doubtful, later(true))
    await store.settle(clear, later(false))
    await endLeases(here)
    assert.equal((await operator.replay(numbersOf([doubtful, clear, died]))).replayed, 3)
    const again = (await store.claim(provider, 9)).map(({ contact, doubt }) => [contact.email, doubt])
    assert.deepEqual(again.sort(), [
      ['a@example.com', true],
      ['b@example.com', false],
      ['dot@example.com', true],
    ])
  })

  test('all that are abandoned, or those to one destination; nothing else', async t => {
    const { store, operator } = await busy(place, t)
    for (const destination of ['webhook', 'crm']) {
      const [one, ...rest] = await store.claim(destination, 9)
      await store.settle(one!, delivered)
      for (const each of rest) await store.settle(each, abandoned)
    }
    assert.equal(await operator.replayAbandoned('crm'), 2)
    assert.deepEqual(await store.claim('webhook', 9), [])
    assert.deepEqual(emailsOf(await store.claim('crm', 9)).sort(), ['bob@example.com', 'cyd@example.com'])
    assert.equal(await operator.replayAbandoned(undefined), 2)
    assert.equal((await store.claim('webhook', 9)).length, 2)
  })

  test('where there is no list it says so', async t => {
    const { operator } = await place(t)
    for (const call of [() => Array.fromAsync(operator.contacts({})), () => operator.replay([1])])
      await assert.rejects(call(), OperatorError, String(call))
  })
})

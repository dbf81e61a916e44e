import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventId } from '../../src/signup/contact.ts'
import { type DeliveryFilter, deleteDelivered } from '../../src/store/deliveries.ts'
import { LEASE, type Settlement } from '../../src/store/outbox.ts'
import {
  DAY,
  emailsOf,
  forEachEngine,
  handClock,
  idOf,
  type MakePlace,
  numbersOf,
  only,
  type Place,
  pendingNow,
  signup,
  stored,
} from './place.ts'

const provider = 'provider'
const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const
const delivered = { is: 'delivered' } as const
const listed = { is: 'listed', joined: true } as const
const later = (wait: number, doubt = false): Settlement => ({ is: 'retry', wait, doubt, why: 'HTTP 503', counts: true })

/** Three contacts are listed, so there are six deliveries; a fourth is pending, and being handed over. */
async function busy(place: MakePlace, t: TestContext) {
  const here = await place(t)
  const store = await here.open({ provider, destinations: ['webhook', 'crm'] })
  for (const who of ['ada', 'bob', 'cyd']) await store.settle(await pendingNow(store, `${who}@example.com`), listed)
  const handover = await pendingNow(store, 'dot@example.com')
  return { ...here, store, handover }
}

/** As if the processes that hold leases had died long ago. */
const endLeases = ({ sql }: Pick<Place, 'sql'>) => sql('update delivery set due_at = 0 where token is not null')

forEachEngine('deliveries', place => {
  test('the longest due come first, and at most as many as asked for', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ destinations: ['webhook'], clock: clock.read })
    for (const second of [40, 10, 50, 20]) {
      await store.admit(signup('Due', `${second}@example.com`))
      await store.settle(await only(store), later(second * 1_000))
    }
    clock.pass(40_000)
    assert.deepEqual(emailsOf(await store.claim('webhook', 2)), ['10@example.com', '20@example.com'])
    assert.deepEqual(emailsOf(await store.claim('webhook', 9)), ['40@example.com'])
  })

  test('a claim of the hand-over of one contact ignores due times, but not a lease', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ provider, clock: clock.read })
    const first = await pendingNow(store)
    await pendingNow(store, 'bob@example.com')
    await store.settle(first, later(DAY, true))
    const second = await only(store, provider, 'ada@example.com')
    assert.deepEqual([second.number, second.doubt, second.attempts], [first.number, true, 1])
    assert.notEqual(second.token, first.token)
    assert.deepEqual(await store.claim(provider, 10, 'ada@example.com'), [])
    clock.pass(LEASE)
    assert.deepEqual(emailsOf(await store.claim(provider, 10, 'ada@example.com')), ['ada@example.com'])
  })

  test('whoever waits for an earlier provider is handed to the new one, in no doubt, since it was never asked', async t => {
    const [here, clock] = [await place(t), handClock()]
    const open = (name: string) => here.open({ provider: name, destinations: ['webhook'], clock: clock.read })
    const first = await open('a')
    const emails = ['ada@example.com', 'bob@example.com', 'cyd@example.com']
    for (const [i, email] of emails.entries()) {
      const delivery = await pendingNow(first, email)
      if (i > 0) await first.settle(delivery, later(0, i === 1))
    }
    await first.close()
    clock.pass(LEASE)
    const second = await open('b')
    const adopted = await second.claim('b', 10)
    assert.deepEqual(emailsOf(adopted).sort(), emails)
    assert.ok(adopted.every(({ doubt, attempts }) => !doubt && attempts === 0))
    for (const each of adopted) assert.equal(await second.settle(each, listed), true)
  })

  test('without a provider, whoever was pending for an earlier one is listed when they sign up again', async t => {
    const here = await place(t)
    const before = await here.open({ provider })
    const leased = await pendingNow(before, 'ada@example.com')
    await before.settle(await pendingNow(before, 'bob@example.com'), later(DAY, true))
    await pendingNow(before, 'cyd@example.com')
    await before.close()

    const after = await here.open({ destinations: ['webhook'] })
    const crowd = Array.from({ length: 20 }, () => after.admit(signup('Eve', 'ADA@example.com')))
    const answers = await Promise.all([...crowd, after.admit(signup('Eve', 'bob@example.com'))])
    assert.equal(answers.filter(({ is }) => is === 'listed now').length, 2)
    assert.equal(answers.map(idOf).filter(id => id === leased.contact.id).length, 1)
    assert.equal(await after.settle(leased, { is: 'removed', why: 'refused' }), false)
    const found = (await stored(here)).map(({ state, events, deliveries }) => [state, events, deliveries])
    assert.deepEqual(found, [
      ['listed', 1, 1],
      ['listed', 1, 1],
      ['pending', 0, 1],
    ])
  })

  test('the operator sees the newest first; state, destination and limit say which', async t => {
    const { store, operator } = await busy(place, t)
    const [claimed] = await store.claim('webhook', 1)
    await store.settle(claimed!, abandoned)
    await store.settle((await store.claim('crm', 1))[0]!, delivered)
    const all = await operator.deliveries({ limit: 50 })
    assert.equal(all.length, 7)
    assert.deepEqual(
      all,
      all.toSorted((a, b) => b.number - a.number),
    )
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

  test('what is replayed is as new and due now; what is in flight is not; the doubt about a hand-over stays', async t => {
    const here = await busy(place, t)
    const { store, operator, handover: died } = here
    const [one, two, three] = await store.claim('webhook', 3)
    await store.settle(one!, abandoned)
    await store.settle(two!, later(DAY, true))
    const [doubtful, clear] = [await pendingNow(store, 'a@example.com'), await pendingNow(store, 'b@example.com')]
    await store.settle(doubtful, later(DAY, true))
    await store.settle(clear, later(DAY))
    const ended = numbersOf([one!, two!, doubtful, clear]).sort()
    assert.deepEqual([...(await operator.replay([...ended, three!.number, died.number, 999_999]))].sort(), ended)
    assert.equal(await store.settle(three!, delivered), true, 'it keeps its lease')
    for (const each of [one!, two!]) assert.equal(await store.settle(each, delivered), false, 'its token is void')
    const again = await store.claim('webhook', 9)
    assert.deepEqual(numbersOf(again).sort(), numbersOf([one!, two!]).sort())
    assert.ok(again.every(({ attempts, doubt }) => attempts === 0 && !doubt))

    await endLeases(here)
    assert.equal((await operator.replay([one!.number, died.number])).length, 2)
    assert.equal(await store.settle(again[0]!, delivered), false)
    assert.deepEqual((await store.claim(provider, 9)).map(({ contact, doubt }) => `${contact.email} ${doubt}`).sort(), [
      'a@example.com true',
      'b@example.com false',
      'dot@example.com true',
    ])
    assert.equal((await store.claim('crm', 9)).length, 3, 'the others are untouched')
  })

  test('all that are abandoned are replayed, or those to one destination; nothing else', async t => {
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

  test('what was delivered long ago is deleted, some at a time; what was abandoned or waits stays', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ destinations: ['webhook', 'crm'], clock: clock.read })
    for (const who of ['ada', 'bob', 'cyd', 'dot']) await store.admit(signup(who, `${who}@example.com`))
    for (const each of await store.claim('webhook', 3)) await store.settle(each, delivered)
    await store.settle(await only(store), abandoned)
    const deleted = () => store.transaction(tx => deleteDelivered(tx, tx.now - DAY, 2))
    clock.pass(DAY)
    assert.equal(await deleted(), 0)
    clock.pass(1)
    assert.deepEqual([await deleted(), await deleted(), await deleted()], [2, 1, 0])
    const { deliveries } = await store.counts()
    const left = deliveries.map(({ destination, state, count }) => `${count} ${destination}: ${state}`)
    assert.deepEqual(left, ['4 crm: waiting', '1 webhook: abandoned'])
  })
})

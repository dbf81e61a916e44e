import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventId, eventOf } from '../../src/signup/contact.ts'
import { deleteDelivered } from '../../src/store/deliveries.ts'
import type { Settlement } from '../../src/store/outbox.ts'
import { bare, DAY, emailsOf, forEachEngine, handClock, idOf, only, signup, stored } from './place.ts'

const later = (wait: number, doubt = false) =>
  ({ is: 'retry', wait, doubt, why: 'HTTP 503', counts: true }) satisfies Settlement

forEachEngine('deliveries', place => {
  test('each destination hears of each contact once; the event says who joined, and when', async t => {
    const [here, clock] = [await place(t), handClock()]
    const store = await here.open({ destinations: ['webhook', 'crm'], clock: clock.read })
    const id = idOf(await store.admit(signup('Ada', 'Ada@example.com')))
    await store.admit(signup('Eve', 'ada@example.com'))
    const at = new Date(clock.read())
    const contact = { id, name: 'Ada', email: 'Ada@example.com', state: 'listed', createdAt: at }
    const told = [await only(store, 'webhook'), await only(store, 'crm')]
    for (const { contact: joined, attempts, doubt } of told) {
      assert.deepEqual(bare(joined), { ...contact, event: { name: 'waitlist.joined', at } })
      assert.deepEqual(eventOf(joined, 'joined').id, eventId({ id }, 'joined'))
      assert.deepEqual([attempts, doubt], [0, false])
    }
    assert.notEqual(told[0]!.number, told[1]!.number)
    assert.notEqual(told[0]!.token, told[1]!.token)
    assert.deepEqual(await store.claim('unheard', 10), [])
    assert.equal((await stored(here))[0]!.deliveries, 2)

    // What one of them says is nothing to the other.
    assert.equal(await store.settle(told[0]!, { is: 'delivered' }), true)
    assert.equal(await store.settle(told[1]!, later(0)), true)
    assert.deepEqual(await store.claim('webhook', 10), [])
    assert.equal((await only(store, 'crm')).number, told[1]!.number)
  })

  test('what was delivered so long ago is deleted, some at a time; what was abandoned or waits stays', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ destinations: ['webhook', 'crm'], clock: clock.read })
    for (const who of ['ada', 'bob', 'cyd', 'dot']) await store.admit(signup(who, `${who}@example.com`))
    for (const each of await store.claim('webhook', 3)) await store.settle(each, { is: 'delivered' })
    await store.settle(await only(store), { is: 'abandoned', why: 'HTTP 404' })
    clock.pass(DAY)
    assert.equal(await store.transaction(tx => deleteDelivered(tx, tx.now - DAY, 10)), 0)
    clock.pass(1)
    assert.equal((await store.claim('crm', 4)).length, 4)
    assert.deepEqual(
      [
        await store.transaction(tx => deleteDelivered(tx, tx.now - DAY, 2)),
        await store.transaction(tx => deleteDelivered(tx, tx.now - DAY, 2)),
        await store.transaction(tx => deleteDelivered(tx, tx.now - DAY, 2)),
      ],
      [2, 1, 0],
    )
    const { deliveries } = await store.counts()
    const left = deliveries.map(({ destination, state, count }) => `${count} ${destination}: ${state}`)
    assert.deepEqual(left, ['4 crm: waiting', '1 webhook: abandoned'])
  })

  test('the longest due come first, and at most as many as asked for', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ destinations: ['webhook', 'crm'], clock: clock.read })
    for (const second of [40, 10, 50, 20, 30]) {
      await store.admit(signup('Due', `due-${second}@example.com`))
      for (const destination of ['webhook', 'crm']) {
        await store.settle(await only(store, destination), later(second * 1_000))
      }
    }
    clock.pass(40_000)
    assert.deepEqual(
      emailsOf(await store.claim('crm', 3)),
      [10, 20, 30].map(second => `due-${second}@example.com`),
    )
    assert.deepEqual(emailsOf(await store.claim('webhook', 1)), ['due-10@example.com'])
    assert.deepEqual(emailsOf(await store.claim('webhook', 2)), ['due-20@example.com', 'due-30@example.com'])
    assert.deepEqual(emailsOf(await store.claim('webhook', 9)), ['due-40@example.com'])
    assert.deepEqual(await store.claim('webhook', 9), [])
  })
})

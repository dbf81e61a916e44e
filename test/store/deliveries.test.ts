import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deleteDelivered } from '../../src/store/deliveries.ts'
import { DAY, emailsOf, forEachEngine, handClock, only, signup } from './place.ts'

forEachEngine('deliveries', place => {
  test('what was delivered long ago is deleted, some at a time; what was abandoned or waits stays', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ destinations: ['webhook', 'crm'], clock: clock.read })
    for (const who of ['ada', 'bob', 'cyd', 'dot']) await store.admit(signup(who, `${who}@example.com`))
    for (const each of await store.claim('webhook', 3)) await store.settle(each, { is: 'delivered' })
    await store.settle(await only(store), { is: 'abandoned', why: 'HTTP 404' })
    const deleted = () => store.transaction(tx => deleteDelivered(tx, tx.now - DAY, 2))
    clock.pass(DAY)
    assert.equal(await deleted(), 0)
    clock.pass(1)
    assert.deepEqual([await deleted(), await deleted(), await deleted()], [2, 1, 0])
    const { deliveries } = await store.counts()
    const left = deliveries.map(({ destination, state, count }) => `${count} ${destination}: ${state}`)
    assert.deepEqual(left, ['4 crm: waiting', '1 webhook: abandoned'])
  })

  test('the longest due come first, and at most as many as asked for', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ destinations: ['webhook'], clock: clock.read })
    for (const second of [40, 10, 50, 20]) {
      await store.admit(signup('Due', `${second}@example.com`))
      const wait = second * 1_000
      await store.settle(await only(store), { is: 'retry', wait, doubt: false, why: 'HTTP 503', counts: true })
    }
    clock.pass(40_000)
    assert.deepEqual(emailsOf(await store.claim('webhook', 2)), ['10@example.com', '20@example.com'])
    assert.deepEqual(emailsOf(await store.claim('webhook', 9)), ['40@example.com'])
  })
})

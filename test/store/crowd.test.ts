import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEASE } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { forEachEngine, handClock, numbersOf, pendingNow, signup } from './place.ts'

const provider = 'provider'
const INSTANCES = 3
/** Of each instance, at once. */
const CROWD = 15

const visitors = (count: number) => Array.from({ length: count }, (_, i) => `visitor-${i}@example.com`)

/** Takes until there is nothing more: a row that another instance is taking is skipped. */
async function takeAll<Item>(stores: readonly Store[], all: number, take: (store: Store) => Promise<readonly Item[]>) {
  const taken: Item[] = []
  while (taken.length < all) {
    const some = await Promise.all(stores.flatMap(store => Array.from({ length: CROWD }, () => take(store))))
    taken.push(...some.flat())
  }
  const more = await Promise.all(stores.map(take))
  return [...taken, ...more.flat()]
}

/** What a store promises to several instances, or to a crowd at one where there can be no other. */
forEachEngine('a crowd at several instances', place => {
  test('no delivery is leased to two, also while more are born; of all that settle one, one is told that it did', async t => {
    const stores = await (await place(t)).instances(INSTANCES, { destinations: ['webhook'] })
    const admitted = visitors(300).map((email, i) => stores[i % stores.length]!.admit(signup('Visitor', email)))
    const taken = await takeAll(stores, 300, store => store.claim('webhook', 4))
    await Promise.all(admitted)
    assert.equal(taken.length, 300)
    assert.equal(new Set(numbersOf(taken)).size, 300)
    const twice = [...taken, ...taken].map((each, i) => stores[i % stores.length]!.settle(each, { is: 'delivered' }))
    assert.equal((await Promise.all(twice)).filter(Boolean).length, 300)
  })

  test('no hand-over is leased to two, due or claimed for its contact', async t => {
    const clock = handClock()
    const stores = await (await place(t)).instances(INSTANCES, { provider, clock: clock.read })
    const emails = visitors(200)
    const pending = await Promise.all(emails.map(email => pendingNow(stores[0]!, email)))
    clock.pass(LEASE)
    let calls = 0
    const taken = await takeAll(stores, 200, store =>
      calls++ % 3 > 0 ? store.claim(provider, 3) : store.claim(provider, 1, emails[calls % 200]!),
    )
    assert.deepEqual(numbersOf(taken).sort(), numbersOf(pending).sort())
    assert.ok(taken.every(({ doubt, attempts }) => doubt && attempts === 0))
  })

  test('while an address is refused, nobody who signs up with it hears that it is listed', async t => {
    const stores = await (await place(t)).instances(INSTANCES, { provider })
    for (let round = 0; round < 20; round++) {
      const email = `visitor-${round}@example.com`
      const delivery = await pendingNow(stores[0]!, email)
      const refused = stores[0]!.settle(delivery, { is: 'removed', why: 'no such domain' })
      const crowd = stores.flatMap(store => Array.from({ length: 5 }, () => store.admit(signup('Visitor', email))))
      const answers = await Promise.all(crowd)
      assert.equal(await refused, true)
      assert.ok(answers.every(({ is }) => is !== 'already listed'))
      assert.ok(answers.filter(({ is }) => is === 'pending now').length <= 1)
    }
  })
})

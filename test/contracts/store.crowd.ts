import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { handClock, instances, type MakePlace, numberOf, numbersOf, pendingNow, signup } from './store.place.ts'

const provider = 'provider'
const listed = { is: 'listed', joined: true } as const
const INSTANCES = 3
/** Of each instance, at once. */
const CROWD = 15

const visitors = (count: number) => Array.from({ length: count }, (_, i) => `visitor-${i}@example.com`)

/** Takes until there is nothing more: a row that somebody is just taking is passed over. */
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
export function crowdContract(name: string, place: MakePlace): void {
  describe(`a crowd at several instances, kept by ${name}`, () => {
    test('no delivery is leased to two, also while more are born', async t => {
      const stores = await instances(await place(t), t, INSTANCES, { destinations: ['webhook'] })
      const admitted = visitors(300).map((email, i) => stores[i % stores.length]!.admit(signup('Visitor', email)))
      const taken = await takeAll(stores, 300, store => store.claim('webhook', 4))
      await Promise.all(admitted)
      assert.equal(taken.length, 300)
      assert.equal(new Set(taken.map(({ number }) => number)).size, 300)
      const settled = taken.map((each, i) => stores[i % stores.length]!.settle(each, { is: 'delivered' }))
      assert.ok((await Promise.all(settled)).every(Boolean))
    })

    test('no hand-over is leased to two, due or claimed for its contact', async t => {
      const clock = handClock()
      const stores = await instances(await place(t), t, INSTANCES, { provider, clock: clock.read })
      const emails = visitors(200)
      const pending = await Promise.all(emails.map(email => pendingNow(stores[0]!, email)))
      const contacts = await Promise.all(emails.map(email => numberOf(stores[0]!, email)))
      clock.pass(LEASE)
      let calls = 0
      const taken = await takeAll(stores, 200, store =>
        calls++ % 3 > 0 ? store.claim(provider, 3) : store.claim(provider, 1, contacts[calls % 200]!),
      )
      assert.deepEqual(numbersOf(taken).sort(), numbersOf(pending).sort())
      assert.ok(taken.every(({ doubt, attempts }) => doubt && attempts === 1))
    })

    test('of all that settle one attempt at once, one is told that it did', async t => {
      const stores = await instances(await place(t), t, INSTANCES, { provider, destinations: ['webhook'] })
      const delivery = await pendingNow(stores[0]!)
      const ended = stores.flatMap(store => [store.settle(delivery, listed), store.settle(delivery, listed)])
      assert.equal((await Promise.all(ended)).filter(Boolean).length, 1)
      const [told, ...more] = await stores[0]!.claim('webhook', 10)
      assert.deepEqual(more, [])
      const settled = stores.map(store => store.settle(told!, { is: 'delivered' }))
      assert.equal((await Promise.all(settled)).filter(Boolean).length, 1)
    })

    test('while an address is refused, nobody who signs up with it is told that it is listed', async t => {
      const stores = await instances(await place(t), t, INSTANCES, { provider })
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

    test('what an instance held when it died is taken over by one other within 60 seconds', async t => {
      const clock = handClock()
      const options = { provider, destinations: ['webhook'], clock: clock.read }
      const stores = await instances(await place(t), t, INSTANCES, options)
      const dead = stores[0]!
      for (const email of visitors(20)) await dead.settle(await pendingNow(dead, email), listed)
      const held = await dead.claim('webhook', 20)
      const begun = await Promise.all(['x@example.com', 'y@example.com'].map(email => pendingNow(dead, email)))
      clock.pass(LEASE - 1)
      for (const store of stores) {
        assert.deepEqual(await store.claim('webhook', 20), [])
        assert.deepEqual(await store.claim(provider, 20), [])
      }
      // Less what an instance rests before it looks again.
      clock.pass(60_000 - 5_000 - (LEASE - 1))
      const deliveries = await takeAll(stores, 20, store => store.claim('webhook', 2))
      assert.equal(new Set(deliveries.map(({ number }) => number)).size, 20)
      assert.ok(deliveries.every(({ doubt, attempts }) => doubt && attempts === 1))
      const handOvers = await takeAll(stores, 2, store => store.claim(provider, 1))
      assert.deepEqual(numbersOf(handOvers).sort(), numbersOf(begun).sort())
      assert.ok(handOvers.every(({ doubt, attempts }) => doubt && attempts === 1))
      for (const each of held) assert.equal(await dead.settle(each, { is: 'delivered' }), false)
      for (const each of begun) assert.equal(await dead.settle(each, listed), false)
    })
  })
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE, type Settlement } from '../../src/waitlist/ports/outbox.ts'
import { eventId, eventOf } from '../../src/waitlist/rules/contact.ts'
import { bare, DAY, emailsOf, handClock, idOf, type MakePlace, only, opened, signup, stored } from './store.place.ts'

const later = (wait: number, doubt = false) => ({ is: 'waiting', wait, doubt, why: 'HTTP 503' }) satisfies Settlement
const settlements: readonly Settlement[] = [{ is: 'delivered' }, later(0), { is: 'abandoned', why: 'HTTP 404' }]

/** What a store promises about the deliveries of events. */
export function deliveryContract(name: string, place: MakePlace): void {
  describe(`deliveries, kept by ${name}`, () => {
    test('each destination hears of each contact once; the event says who joined, and when', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { destinations: ['webhook', 'crm'], clock: clock.read })
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
      assert.equal((await stored(here, t))?.[0]?.deliveries ?? 2, 2)

      // What one of them says is nothing to the other.
      assert.equal(await store.settle(told[0]!, { is: 'delivered' }), true)
      assert.equal(await store.settle(told[1]!, later(0)), true)
      assert.deepEqual(await store.claim('webhook', 10), [])
      assert.equal((await only(store, 'crm')).number, told[1]!.number)
    })

    test('a lease lasts; when it ends the next attempt is in doubt, and only its token settles anything', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { destinations: ['webhook'], clock: clock.read })
      await store.admit(signup('Ada', 'ada@example.com'))
      const first = await only(store)
      clock.pass(LEASE - 1)
      assert.deepEqual(await store.claim('webhook', 10), [])
      clock.pass(1)
      const second = await only(store)
      assert.deepEqual([second.number, second.attempts, second.doubt], [first.number, 1, true])
      assert.deepEqual(second.contact, first.contact)
      assert.notEqual(second.token, first.token)
      for (const settlement of settlements) assert.equal(await store.settle(first, settlement), false)
      assert.deepEqual(await store.claim('webhook', 10), [])
      assert.equal(await store.settle(second, later(0, true)), true)
      assert.equal(await store.settle(second, { is: 'delivered' }), false, 'the token is used up')
      assert.equal((await only(store)).attempts, 2)
    })

    test('a lease that has ended and that nobody took since is still good', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { destinations: ['webhook'], clock: clock.read })
      await store.admit(signup('Ada', 'ada@example.com'))
      const delivery = await only(store)
      clock.pass(DAY)
      assert.equal(await store.settle(delivery, { is: 'delivered' }), true)
      assert.deepEqual(await store.claim('webhook', 10), [])
    })

    test('what is delivered or abandoned is over, and kept', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { destinations: ['webhook'], clock: clock.read })
      for (const settlement of [{ is: 'delivered' }, { is: 'abandoned', why: 'HTTP 404' }] as const) {
        await store.admit(signup('Ada', `${settlement.is}@example.com`))
        const delivery = await only(store)
        assert.equal(await store.settle(delivery, settlement), true)
        for (const after of settlements) assert.equal(await store.settle(delivery, after), false)
        clock.pass(30 * DAY)
        assert.deepEqual(await store.claim('webhook', 10), [])
      }
      assert.deepEqual((await stored(here, t))?.map(({ deliveries }) => deliveries) ?? [1, 1], [1, 1])
    })

    test('what was delivered so long ago is deleted, some at a time; what was abandoned or waits stays', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { destinations: ['webhook', 'crm'], clock: clock.read })
      for (const who of ['ada', 'bob', 'cyd', 'dot']) await store.admit(signup(who, `${who}@example.com`))
      for (const each of await store.claim('webhook', 3)) await store.settle(each, { is: 'delivered' })
      await store.settle(await only(store), { is: 'abandoned', why: 'HTTP 404' })
      clock.pass(DAY)
      assert.equal(await store.prune(DAY, 10), 0)
      clock.pass(1)
      assert.equal((await store.claim('crm', 4)).length, 4)
      assert.deepEqual([await store.prune(DAY, 2), await store.prune(DAY, 2), await store.prune(DAY, 2)], [2, 1, 0])
      const { deliveries } = await store.counts()
      const left = deliveries.map(({ destination, state, count }) => `${count} ${destination}: ${state}`)
      assert.deepEqual(left, ['4 crm: waiting', '1 webhook: abandoned'])
    })

    test('what waits is due after its wait; its doubt is as told, and an attempt that is not counted does not count', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { destinations: ['webhook'], clock: clock.read })
      for (const [doubt, uncounted] of [
        [false, false],
        [true, false],
        [false, true],
      ] as const) {
        await store.admit(signup('Ada', `${doubt}-${uncounted}@example.com`))
        let { number, contact, ...due } = await only(store)
        for (const attempts of [0, 1, 2, 3]) {
          assert.deepEqual([due.attempts, due.doubt], [uncounted ? 0 : attempts, attempts > 0 && doubt])
          assert.equal(await store.settle({ ...due, number, contact }, { ...later(5_000, doubt), uncounted }), true)
          clock.pass(4_999)
          assert.deepEqual(await store.claim('webhook', 10), [])
          clock.pass(1)
          const { number: same, contact: who, ...next } = await only(store)
          assert.deepEqual([same, who], [number, contact])
          due = next
        }
        await store.settle({ ...due, number, contact }, { is: 'delivered' })
      }
    })

    test('the longest due come first, and at most as many as asked for', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { destinations: ['webhook', 'crm'], clock: clock.read })
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

    test('opened again it finds every delivery as it was, and new ones go to the new destinations', async t => {
      const [here, clock] = [await place(t), handClock()]
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t, { destinations: ['webhook', 'crm'], clock: clock.read })
      for (const who of ['delivered', 'abandoned', 'waiting', 'leased', 'dead']) {
        await before.admit(signup('Visitor', `${who}@example.com`))
      }
      const claimed = await before.claim('webhook', 10)
      const named = (who: string) => claimed.find(({ contact }) => contact.email === `${who}@example.com`)!
      await before.settle(named('delivered'), { is: 'delivered' })
      await before.settle(named('abandoned'), { is: 'abandoned', why: 'HTTP 404' })
      await before.settle(named('waiting'), later(10_000, true))
      await before.close()

      const after = await opened(here, t, { destinations: ['webhook', 'chat'], clock: clock.read })
      assert.deepEqual(await after.claim('webhook', 10), [])
      assert.equal(await after.settle(named('leased'), { is: 'delivered' }), true)
      clock.pass(10_000)
      const due = await only(after)
      assert.deepEqual([due.contact, due.doubt, due.attempts], [named('waiting').contact, true, 1])
      clock.pass(LEASE - 10_000)
      const taken = await only(after)
      assert.deepEqual([taken.contact, taken.doubt, taken.attempts], [named('dead').contact, true, 1])

      await after.admit(signup('New', 'new@example.com'))
      assert.deepEqual(emailsOf(await after.claim('chat', 10)), ['new@example.com'])
      assert.deepEqual(emailsOf(await after.claim('webhook', 10)), ['new@example.com'])
      assert.equal((await after.claim('crm', 10)).length, 5, 'what was meant for a former destination is kept')
    })
  })
}

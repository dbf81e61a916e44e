import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE, type Store } from '../../src/waitlist/ports.ts'
import { LONGEST_WAIT } from '../../src/waitlist/retry.ts'
import {
  bare,
  DAY,
  emailsOf,
  handClock,
  type MakePlace,
  numberOf,
  only,
  opened,
  pendingNow,
  signup,
} from './store.place.ts'

const provider = 'provider'
const HOUR = 3_600_000
const YEAR = 365 * DAY

/** A delivery that is to be tried again in `wait` milliseconds. */
async function waiting(store: Store, wait: number): Promise<void> {
  await store.admit(signup('Ada', 'ada@example.com'))
  const delivery = await only(store)
  assert.equal(await store.settle(delivery, { is: 'waiting', wait, doubt: true, why: 'HTTP 503' }), true)
}

/** What a store promises about deliveries when its clock, which may be the database's, is set. */
export function clockContract(name: string, place: MakePlace): void {
  describe(`a clock that is set, kept by ${name}`, { timeout: 60_000 }, () => {
    for (const [by, jump] of [
      ['an hour', HOUR],
      ['a year', YEAR],
    ] as const) {
      test(`back by ${by}: what waits is due after the longest wait of all at the latest, and as it was`, async t => {
        const clock = handClock()
        const store = await opened(await place(t), t, { destinations: ['webhook'], clock: clock.read })
        const joined = new Date(clock.read())
        await waiting(store, 5_000)
        clock.pass(-jump)
        if (jump < LONGEST_WAIT) {
          assert.deepEqual(await store.claim('webhook', 10), [], 'nobody can tell that it waits too long')
          clock.pass(jump + 5_000)
        }
        const { contact, doubt, attempts } = await only(store)
        assert.deepEqual([doubt, attempts], [true, 1])
        assert.deepEqual([contact.createdAt, contact.event?.at], [joined, joined])
        assert.deepEqual(await store.claim('webhook', 10), [], 'its lease is of today')
      })

      test(`back by ${by}: what a process held that died is due now, in doubt, to all who ask`, async t => {
        const clock = handClock()
        const store = await opened(await place(t), t, { provider, destinations: ['webhook'], clock: clock.read })
        const died = await pendingNow(store)
        const listed = await pendingNow(store, 'bob@example.com')
        await store.settle(listed, { is: 'listed', joined: true })
        const event = await only(store)
        clock.pass(-jump)
        const contact = await numberOf(store)
        const again = await only(store, provider, contact)
        assert.deepEqual([bare(again.contact), again.doubt], [died.contact, true])
        assert.deepEqual(await store.claim(provider, 10, contact), [])
        const told = await only(store)
        assert.deepEqual([told.number, told.doubt, told.attempts], [event.number, true, 1])
        for (const lost of [died, event]) {
          assert.equal(await store.settle(lost, { is: 'abandoned', why: 'HTTP 404' }), false, 'the token decides')
        }
        clock.pass(LEASE)
        assert.deepEqual(emailsOf(await store.claim(provider, 10)), ['ada@example.com'])
      })

      test(`back by ${by}: what joins afterwards is due at once, and comes before what is due too late`, async t => {
        const clock = handClock()
        const store = await opened(await place(t), t, { destinations: ['webhook'], clock: clock.read })
        await waiting(store, DAY)
        clock.pass(-jump)
        await store.admit(signup('Bob', 'bob@example.com'))
        assert.deepEqual(emailsOf(await store.claim('webhook', 1)), ['bob@example.com'])
        assert.equal((await store.claim('webhook', 10)).length, jump > LONGEST_WAIT ? 1 : 0)
      })

      test(`forward by ${by}: all that waits is due, and whoever held it may settle it until somebody takes it`, async t => {
        const clock = handClock()
        const store = await opened(await place(t), t, { provider, destinations: ['webhook'], clock: clock.read })
        const held = await pendingNow(store)
        const taken = await pendingNow(store, 'bob@example.com')
        clock.pass(jump)
        assert.equal(await store.settle(held, { is: 'listed', joined: true }), true)
        const again = await only(store, provider)
        assert.deepEqual([bare(again.contact), again.doubt], [taken.contact, true])
        assert.equal(await store.settle(taken, { is: 'listed', joined: true }), false, 'the token decides')
        assert.equal((await store.claim('webhook', 10)).length, 1)
      })
    }

    test('back by a little, as clocks are adjusted: a lease that has just begun holds, and what waits goes on waiting', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, destinations: ['webhook'], clock: clock.read })
      const held = await pendingNow(store)
      const contact = await numberOf(store)
      const later = await pendingNow(store, 'bob@example.com')
      await store.settle(later, { is: 'waiting', wait: DAY, doubt: false, why: 'HTTP 503' })
      for (const step of [1, 1_000, LEASE - 1_001]) {
        clock.pass(-step)
        assert.deepEqual(await store.claim(provider, 10), [])
        assert.deepEqual(await store.claim(provider, 10, contact), [])
      }
      assert.equal(await store.settle(held, { is: 'listed', joined: true }), true)
    })

    test('back by a year: of a crowd that claims a thousand that are due next year, each gets others', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { destinations: ['webhook'], clock: clock.read })
      const admit = (i: number) => store.admit(signup('Visitor', `visitor-${i}@example.com`))
      await Promise.all(Array.from({ length: 1_000 }, (_, i) => admit(i)))
      const all = await store.claim('webhook', 1_000)
      // Half of them held by a process that died.
      const half = all.slice(0, 500)
      await Promise.all(half.map(each => store.settle(each, { is: 'waiting', wait: 0, doubt: false, why: 'HTTP 503' })))
      clock.pass(-YEAR)
      const claimed = await Promise.all(Array.from({ length: 60 }, () => store.claim('webhook', 20)))
      assert.ok(claimed.every(({ length }) => length <= 20))
      const rest = await store.claim('webhook', 1_000)
      const numbers = [...claimed.flat(), ...rest].map(({ number }) => number)
      assert.equal(numbers.length, 1_000)
      assert.equal(new Set(numbers).size, 1_000)
      assert.deepEqual(
        new Set([...claimed.flat(), ...rest].filter(({ doubt }) => doubt).map(({ number }) => number)),
        new Set(all.slice(500).map(({ number }) => number)),
      )
    })
  })
}

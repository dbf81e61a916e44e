import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Delivery, LEASE, type Store } from '../../src/waitlist/ports.ts'
import { LONGEST_WAITS } from '../../src/waitlist/retry.ts'
import { isSlow } from '../harness/slow.ts'
import {
  bare,
  DAY,
  emailsOf,
  handClock,
  type MakePlace,
  numberOf,
  numbersOf,
  only,
  opened,
  type Place,
  type PlaceOptions,
  pendingNow,
  signup,
} from './store.place.ts'

const provider = 'provider'
const HOUR = 3_600_000
const YEAR = 365 * DAY
const jumps = [
  ['an hour', HOUR],
  ['a year', YEAR],
] as const

type Clock = ReturnType<typeof handClock>

const timed = ({ read, monotonic }: Clock, more: PlaceOptions = {}): PlaceOptions => ({
  destinations: ['webhook'],
  clock: read,
  monotonic,
  ...more,
})

/** A delivery that was attempted so many times, and is to be tried again in `wait` milliseconds. */
async function waiting(store: Store, email: string, wait: number, attempts = 1): Promise<void> {
  await store.admit(signup('Ada', email))
  for (let left = attempts; left > 0; left--) {
    const delivery = await only(store)
    const settlement = { is: 'waiting', wait: left === 1 ? wait : 0, doubt: true, why: 'HTTP 503' } as const
    assert.equal(await store.settle(delivery, settlement), true)
  }
}

/** What is claimed in the next seconds, in each of which the background looks once. */
async function soon(store: Store, clock: Clock, destination = 'webhook', most = 10): Promise<readonly Delivery[]> {
  const found: Delivery[] = []
  for (let second = 0; second < 3; second++) {
    found.push(...(await store.claim(destination, most)))
    clock.pass(1_000)
  }
  return found
}

/** How a clock is set: while the store is open, or while it is closed, so that nobody sees it. */
const ways = {
  'while the store is open': async (_: Place, __: TestContext, store: Store, set: () => void) => {
    // It has seen the clock before.
    await store.claim('nobody', 1)
    set()
    return store
  },
  'while the store is closed': async (
    place: Place,
    t: TestContext,
    store: Store,
    set: () => void,
    options: PlaceOptions,
  ) => {
    await store.close()
    set()
    return opened(place, t, options)
  },
}

/** What a store promises about deliveries when its clock, which may be the database's, is set. */
export function clockContract(name: string, make: MakePlace): void {
  describe(`a clock that is set, kept by ${name}`, { timeout: 180_000 }, () => {
    for (const [how, setting] of Object.entries(ways)) {
      const isOpen = how === 'while the store is open'

      for (const [by, jump] of jumps) {
        test(`back by ${by} ${how}: what waits is due within seconds, and is as it was`, async t => {
          const [place, clock] = [await make(t), handClock()]
          if (!isOpen && place.forgets !== undefined) return t.skip(place.forgets)
          const before = await opened(place, t, timed(clock))
          const joined = new Date(clock.read())
          await waiting(before, 'ada@example.com', 5_000)
          const store = await setting(place, t, before, () => clock.set(-jump), timed(clock))
          const [{ contact, doubt, attempts }, ...none] = (await soon(store, clock)) as [Delivery]
          assert.deepEqual([doubt, attempts, none], [true, 1, []])
          assert.deepEqual([contact.createdAt, contact.event?.at], [joined, joined])
          clock.pass(LEASE - 3_001)
          assert.deepEqual(await store.claim('webhook', 10), [], 'its lease is of today')
        })

        test(`back by ${by} ${how}: what a process held that died is due within seconds, in doubt`, async t => {
          const [place, clock] = [await make(t), handClock()]
          if (!isOpen && place.forgets !== undefined) return t.skip(place.forgets)
          const options = timed(clock, { provider })
          const before = await opened(place, t, options)
          const died = await pendingNow(before)
          const listed = await pendingNow(before, 'bob@example.com')
          await before.settle(listed, { is: 'listed', joined: true })
          const event = await only(before)
          const store = await setting(place, t, before, () => clock.set(-jump), options)
          const contact = await numberOf(store)
          assert.deepEqual(await soon(store, clock, provider, 0), [])
          const again = await only(store, provider, contact)
          assert.deepEqual([bare(again.contact), again.doubt], [died.contact, true])
          assert.deepEqual(await store.claim(provider, 10, contact), [], 'its lease is of today')
          const [told, ...none] = (await soon(store, clock)) as [Delivery]
          assert.deepEqual([told.number, told.doubt, told.attempts, none], [event.number, true, 1, []])
          for (const lost of [died, event]) {
            assert.equal(await store.settle(lost, { is: 'abandoned', why: 'HTTP 404' }), false, 'the token decides')
          }
        })
      }

      test(`back by an hour ${how}: what may wait that long after its attempts goes on waiting`, async t => {
        const [place, clock] = [await make(t), handClock()]
        if (!isOpen && place.forgets !== undefined) return t.skip(place.forgets)
        const before = await opened(place, t, timed(clock))
        const waits = LONGEST_WAITS.map((longest, attempts) => ({
          longest,
          attempts,
          email: `a${attempts}@example.com`,
        }))
        for (const { email, attempts } of waits.slice(1)) await waiting(before, email, 20_000, attempts)
        const store = await setting(place, t, before, () => clock.set(-HOUR), timed(clock))
        const short = waits.slice(1).filter(({ longest }) => longest < HOUR)
        assert.deepEqual(
          emailsOf(await soon(store, clock, 'webhook', 100)).sort(),
          short.map(({ email }) => email).sort(),
        )
        assert.ok(short.length > 1 && short.length < waits.length - 1)
        clock.pass(HOUR + 20_000)
        assert.equal((await store.claim('webhook', 100)).length, waits.length - 1)
      })
    }

    test('not set at all: what waits as long as it may after so many attempts is due then, and not before', async t => {
      const [place, clock] = [await make(t), handClock()]
      if (place.forgets !== undefined) return t.skip(place.forgets)
      for (const attempts of [1, 2, 5, LONGEST_WAITS.length - 1, LONGEST_WAITS.length + 1]) {
        const wait = LONGEST_WAITS[attempts] ?? LONGEST_WAITS.at(-1)!
        const before = await opened(place, t, timed(clock))
        await waiting(before, `a${attempts}@example.com`, wait, attempts)
        await before.close()
        const store = await opened(place, t, timed(clock))
        assert.deepEqual(await store.claim('webhook', 10), [])
        clock.pass(wait - 1)
        assert.deepEqual(await store.claim('webhook', 10), [])
        clock.pass(1)
        await store.settle(await only(store), { is: 'delivered' })
        await store.close()
      }
    })

    for (const [by, jump] of jumps) {
      test(`back by ${by}: what joins afterwards is due at once`, async t => {
        const clock = handClock()
        const store = await opened(await make(t), t, timed(clock))
        await store.claim('webhook', 10)
        clock.set(-jump)
        await store.admit(signup('Bob', 'bob@example.com'))
        assert.deepEqual(emailsOf(await store.claim('webhook', 1)), ['bob@example.com'])
      })

      test(`forward by ${by}: all that waits is due, and whoever held it may settle it until somebody takes it`, async t => {
        const clock = handClock()
        const store = await opened(await make(t), t, timed(clock, { provider }))
        const held = await pendingNow(store)
        const taken = await pendingNow(store, 'bob@example.com')
        clock.set(jump)
        assert.equal(await store.settle(held, { is: 'listed', joined: true }), true)
        const again = await only(store, provider)
        assert.deepEqual([bare(again.contact), again.doubt], [taken.contact, true])
        assert.equal(await store.settle(taken, { is: 'listed', joined: true }), false, 'the token decides')
        assert.equal((await store.claim('webhook', 10)).length, 1)
      })

      test(`forward by ${by}, and back: what was stored meanwhile is due within seconds`, async t => {
        const clock = handClock()
        const store = await opened(await make(t), t, timed(clock))
        assert.deepEqual(await store.claim('webhook', 10), [])
        clock.set(jump)
        await waiting(store, 'ada@example.com', 5_000)
        clock.set(-jump)
        assert.deepEqual(emailsOf(await soon(store, clock)), ['ada@example.com'])
      })
    }

    test('back by a second, as clocks are adjusted: what waits goes on waiting; by almost a minute: leases hold', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock, { provider }))
      const held = await pendingNow(store)
      const contact = await numberOf(store)
      const later = await pendingNow(store, 'bob@example.com')
      await store.settle(later, { is: 'waiting', wait: LONGEST_WAITS[1]!, doubt: false, why: 'HTTP 503' })
      for (const step of [0, 1, 1_000]) {
        clock.set(-step)
        for (let i = 0; i < 2; i++) assert.deepEqual(await store.claim(provider, 10), [])
      }
      clock.set(1_002 - LEASE)
      assert.deepEqual(emailsOf(await soon(store, clock, provider)), ['bob@example.com'])
      assert.deepEqual(await store.claim(provider, 10, contact), [])
      assert.equal(await store.settle(held, { is: 'listed', joined: true }), true)
    })

    test('back by a year: of a crowd that claims thousands that are due next year, each gets others', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock))
      const admit = (i: number) => store.admit(signup('Visitor', `visitor-${i}@example.com`))
      const [most, half] = isSlow ? [5_000, 2_500] : [2_000, 1_000]
      await Promise.all(Array.from({ length: most }, (_, i) => admit(i)))
      const all = await store.claim('webhook', most)
      // Half of them held by a process that died.
      const died = new Set(numbersOf(all.slice(half)))
      const failed = { is: 'waiting', wait: 0, doubt: false, why: 'HTTP 503' } as const
      await Promise.all(all.slice(0, half).map(each => store.settle(each, failed)))
      clock.set(-YEAR)
      assert.deepEqual(await store.claim('webhook', 0), [])
      const claimed: Delivery[] = []
      for (let round = 0; round < 20 && claimed.length < most; round++) {
        const crowd = await Promise.all(Array.from({ length: 10 }, () => store.claim('webhook', 100)))
        assert.ok(crowd.every(({ length }) => length <= 100))
        claimed.push(...crowd.flat())
      }
      assert.equal(claimed.length, most)
      assert.equal(new Set(numbersOf(claimed)).size, most)
      assert.deepEqual(new Set(numbersOf(claimed.filter(({ doubt }) => doubt))), died)
    })
  })
}

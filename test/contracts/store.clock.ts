import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LONGEST_WAIT } from '../../src/waitlist/delivery/retry.ts'
import { type Delivery, LEASE } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import {
  bare,
  DAY,
  emailsOf,
  handClock,
  type MakePlace,
  numberOf,
  only,
  opened,
  type PlaceOptions,
  pendingNow,
  signup,
} from './store.place.ts'

const provider = 'provider'
const YEAR = 365 * DAY

type Clock = ReturnType<typeof handClock>

const timed = ({ read }: Clock, more: PlaceOptions = {}): PlaceOptions => ({
  destinations: ['webhook'],
  clock: read,
  ...more,
})

/** A delivery that was attempted once, and is to be tried again in `wait` milliseconds. */
async function waiting(store: Store, email: string, wait: number): Promise<void> {
  await store.admit(signup('Ada', email))
  const settlement = { is: 'waiting', wait, doubt: true, why: 'HTTP 503' } as const
  assert.equal(await store.settle(await only(store), settlement), true)
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

/** What a store promises about deliveries when its clock, which may be the database's, is set. */
export function clockContract(name: string, make: MakePlace): void {
  describe(`a clock that is set, kept by ${name}`, { timeout: 180_000 }, () => {
    test('back by a year: what waits is due within seconds, and is as it was', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock))
      const joined = new Date(clock.read())
      await waiting(store, 'ada@example.com', 5_000)
      clock.set(-YEAR)
      const [{ contact, doubt, attempts }, ...none] = (await soon(store, clock)) as [Delivery]
      assert.deepEqual([doubt, attempts, none], [true, 1, []])
      assert.deepEqual([contact.createdAt, contact.event?.at], [joined, joined])
      clock.pass(LEASE - 3_001)
      assert.deepEqual(await store.claim('webhook', 10), [], 'its lease is of today')
    })

    test('back by a year: what a process held that died is due within seconds, in doubt', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock, { provider }))
      const died = await pendingNow(store)
      const listed = await pendingNow(store, 'bob@example.com')
      await store.settle(listed, { is: 'listed', joined: true })
      const event = await only(store)
      clock.set(-YEAR)
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

    test('not set, or by seconds: the longest wait ends when it should, and not before', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock))
      await waiting(store, 'ada@example.com', LONGEST_WAIT)
      clock.set(-5_000)
      assert.deepEqual(await soon(store, clock), [])
      clock.pass(LONGEST_WAIT + 1_999)
      assert.deepEqual(await store.claim('webhook', 10), [])
      clock.pass(1)
      assert.equal((await store.claim('webhook', 10)).length, 1)
    })

    test('back by a year: what joins afterwards is due at once', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock))
      clock.set(-YEAR)
      await store.admit(signup('Bob', 'bob@example.com'))
      assert.deepEqual(emailsOf(await store.claim('webhook', 1)), ['bob@example.com'])
    })

    test('forward by a year: all that waits is due, and whoever held it may settle it until somebody takes it', async t => {
      const clock = handClock()
      const store = await opened(await make(t), t, timed(clock, { provider }))
      const held = await pendingNow(store)
      const taken = await pendingNow(store, 'bob@example.com')
      clock.set(YEAR)
      assert.equal(await store.settle(held, { is: 'listed', joined: true }), true)
      const again = await only(store, provider)
      assert.deepEqual([bare(again.contact), again.doubt], [taken.contact, true])
      assert.equal(await store.settle(taken, { is: 'listed', joined: true }), false, 'the token decides')
      assert.equal((await store.claim('webhook', 10)).length, 1)
    })
  })
}

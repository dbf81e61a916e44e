import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import {
  bare,
  DAY,
  handClock,
  idOf,
  type MakePlace,
  numberOf,
  numbersOf,
  opened,
  pendingNow,
  signup,
  stored,
} from './store.place.ts'

const provider = 'provider'

/** One whose hand-over is due in `wait` milliseconds, and its number. */
async function waiting(store: Store, email: string, wait: number, doubt = false): Promise<number> {
  const delivery = await pendingNow(store, email)
  assert.equal(await store.settle(delivery, { is: 'waiting', wait, doubt, why: 'no connection' }), true)
  return delivery.number
}

/** What a store promises about hand-overs that are completed later, and about a provider that changes meanwhile. */
export function dueContract(name: string, place: MakePlace): void {
  describe(`hand-overs that are due, kept by ${name}`, { timeout: 180_000 }, () => {})

  describe(`a provider that changes, kept by ${name}`, { timeout: 180_000 }, () => {
    test('those who wait for an earlier provider are handed to the new one, and doubt stays with whom it is about', async t => {
      const [here, clock] = [await place(t), handClock()]
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const open = (name: string) => opened(here, t, { provider: name, destinations: ['webhook'], clock: clock.read })
      const first = await open('a')
      await waiting(first, 'doubt@example.com', 0, true)
      await waiting(first, 'clear@example.com', 0, false)
      await pendingNow(first, 'died@example.com')
      await first.close()
      clock.pass(LEASE)

      const second = await open('b')
      const adopted = await second.claim('b', 10)
      assert.deepEqual(
        adopted.map(({ contact, doubt, attempts }) => [contact.email, contact.state, doubt, attempts]).sort(),
        [
          ['clear@example.com', 'pending', false, 0],
          ['died@example.com', 'pending', false, 0],
          ['doubt@example.com', 'pending', false, 0],
        ],
      )
      const later = { is: 'waiting', wait: 0, doubt: false, why: 'no connection' } as const
      for (const each of adopted) assert.equal(await second.settle(each, later), true)
      await second.close()

      const third = await open('a')
      const again = await third.claim('a', 10)
      assert.deepEqual(again.map(({ contact, doubt, attempts }) => [contact.email, doubt, attempts]).sort(), [
        ['clear@example.com', false, 1],
        ['died@example.com', true, 1],
        ['doubt@example.com', true, 1],
      ])
      for (const each of again) assert.equal(await third.settle(each, { is: 'listed', joined: true }), true)
      const found = (await stored(here, t))?.map(({ state, events, deliveries }) => [state, events, deliveries])
      if (found !== undefined) assert.deepEqual(found, Array(3).fill(['listed', 1, 1]))
      assert.equal((await third.claim('webhook', 10)).length, 3)
      await third.close()

      const fourth = await open('b')
      assert.deepEqual(await fourth.claim('b', 10), [], 'nothing of it is left for the other')
      for (const each of adopted) assert.equal(await fourth.settle(each, { is: 'removed', why: 'late' }), false)
    })

    test('a great many are adopted', async t => {
      const here = await place(t)
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t, { provider: 'a' })
      await Promise.all(Array.from({ length: 6_000 }, (_, i) => pendingNow(before, `visitor-${i}@example.com`)))
      await before.close()
      const after = await opened(here, t, { provider: 'b' })
      assert.equal(new Set(numbersOf(await after.claim('b', 10_000))).size, 6_000)
    })

    test('without a provider, those who were pending for an earlier one are listed when they sign up again', async t => {
      const [here, clock] = [await place(t), handClock()]
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t, { provider, clock: clock.read })
      const leased = await pendingNow(before, 'Leased@example.com')
      const waits = await pendingNow(before, 'waits@example.com')
      await before.settle(waits, { is: 'waiting', wait: DAY, doubt: true, why: 'no connection' })
      await pendingNow(before, 'never@example.com')
      const contact = await numberOf(before, 'leased@example.com')
      await before.close()

      const after = await opened(here, t, { destinations: ['webhook'], clock: clock.read })
      clock.pass(1_000)
      const crowd = Array.from({ length: 20 }, () => after.admit(signup('Eve', 'LEASED@example.com')))
      const answers = await Promise.all([...crowd, after.admit(signup('Eve', 'waits@example.com'))])
      const now = answers.filter(({ is }) => is !== 'already listed')
      assert.deepEqual(now.map(idOf).sort(), [leased.contact.id, waits.contact.id].sort())
      assert.equal(await after.settle(leased, { is: 'removed', why: 'refused' }), false)
      assert.equal((await after.admit(signup('New', 'new@example.com'))).is, 'listed now')
      assert.deepEqual(await after.claim(provider, 10, contact), [])

      const told = (await after.claim('webhook', 10)).map(each => each.contact)
      const event = { name: 'waitlist.joined', at: new Date(clock.read()) }
      const listed = told.find(({ id }) => id === leased.contact.id)
      assert.deepEqual(listed && bare(listed), { ...leased.contact, state: 'listed', event })
      assert.ok(told.every(each => each.event?.at.getTime() === clock.read()))
      assert.deepEqual(told.map(({ email }) => email).sort(), [
        'Leased@example.com',
        'new@example.com',
        'waits@example.com',
      ])
      const found = (await stored(here, t))?.map(({ email, ...rest }) => [
        email,
        rest.state,
        rest.events,
        rest.deliveries,
      ])
      if (found !== undefined) {
        assert.deepEqual(found.sort(), [
          ['Leased@example.com', 'listed', 1, 1],
          ['never@example.com', 'pending', 0, 1],
          ['new@example.com', 'listed', 1, 1],
          ['waits@example.com', 'listed', 1, 1],
        ])
      }
    })
  })
}

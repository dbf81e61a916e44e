import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE, type Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { eventId } from '../../src/waitlist/rules/contact.ts'
import { isSlow } from '../harness/slow.ts'
import {
  bare,
  DAY,
  emailsOf,
  handClock,
  idOf,
  type MakePlace,
  numberOf,
  numbersOf,
  only,
  opened,
  pendingNow,
  signup,
  stored,
  uuidV7,
} from './store.place.ts'

const provider = 'provider'

const later = (wait: number, doubt = false) =>
  ({ is: 'waiting', wait, doubt, why: 'no connection' }) satisfies Settlement
const listed = { is: 'listed', joined: true } as const
const removed = { is: 'removed', why: 'no such domain' } as const
const settlements: readonly Settlement[] = [
  { is: 'listed', joined: true, providerId: 'p-1' },
  { is: 'listed', joined: false },
  later(0),
  removed,
]

/** One whose hand-over is due in `wait` milliseconds, and its number. */
async function waiting(store: Store, email: string, wait: number, doubt = false): Promise<number> {
  const delivery = await pendingNow(store, email)
  assert.equal(await store.settle(delivery, later(wait, doubt)), true)
  return delivery.number
}

/** What a store promises about contacts that a provider has yet to confirm, and about a provider that changes meanwhile. */
export function handOverContract(name: string, place: MakePlace): void {
  describe(`hand-overs, kept by ${name}`, () => {
    test('a new contact is pending now under a lease; then still pending; once listed, already listed', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, destinations: ['webhook'], clock: clock.read })
      const delivery = await pendingNow(store, 'Ada@example.com')
      const { contact, token, number, ...rest } = delivery
      const { id } = contact
      assert.match(id, uuidV7)
      const createdAt = new Date(clock.read())
      assert.deepEqual(contact, { id, name: 'Ada', email: 'Ada@example.com', state: 'pending', createdAt })
      assert.notEqual(token, '')
      assert.deepEqual(rest, { event: 'joined', doubt: false, attempts: 0 })

      clock.pass(LEASE - 1)
      const again = await store.admit(signup('Eve', 'ADA@example.com'))
      assert.equal(again.is, 'still pending')
      assert.deepEqual(await store.claim(provider, 10, await numberOf(store)), [])
      assert.deepEqual(await store.claim(provider, 10), [])
      assert.deepEqual(await store.claim('webhook', 10), [])
      const contacts = await stored(here, t)
      if (contacts !== null) {
        const pending = { name: 'Ada', email: 'Ada@example.com', state: 'pending', providerId: null }
        assert.deepEqual(contacts, [{ id, ...pending, events: 0, deliveries: 1 }])
      }

      const contactNumber = await numberOf(store)
      assert.equal(await store.settle(delivery, listed), true)
      assert.deepEqual(await store.admit(signup('Ada', 'ada@example.com')), { is: 'already listed' })
      assert.deepEqual(await store.claim(provider, 10, contactNumber), [])
      assert.deepEqual(await store.claim(provider, 10), [])
      assert.equal((await only(store)).number > number, true, 'and its event is told of')
    })

    test('of 300 simultaneous signups with one address one is pending now, and all others learn its number', async t => {
      const store = await opened(await place(t), t, { provider })
      const answers = await Promise.all(
        Array.from({ length: 300 }, (_, i) =>
          store.admit(signup('Ada', i % 2 ? 'ada@example.com' : 'ADA@example.com')),
        ),
      )
      const [first, ...none] = answers.flatMap(answer => (answer.is === 'pending now' ? [answer.delivery] : []))
      assert.equal(none.length, 0)
      const others = answers.filter(({ is }) => is !== 'pending now')
      const contact = await numberOf(store)
      assert.deepEqual(others, Array(299).fill({ is: 'still pending', contact }))
      assert.equal(await store.settle(first!, later(DAY)), true)
      assert.equal((await only(store, provider, contact)).number, first!.number)
    })

    test('when a lease ends the next attempt is in doubt, and only its token settles anything', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, clock: clock.read })
      const first = await pendingNow(store)
      clock.pass(LEASE)
      const contact = await numberOf(store)
      const second = await only(store, provider, contact)
      assert.deepEqual([second.doubt, second.attempts, bare(second.contact)], [true, 1, first.contact])
      const before = await stored(here, t)
      for (const settlement of settlements) assert.equal(await store.settle(first, settlement), false)
      assert.deepEqual(await stored(here, t), before, 'nothing was changed')
      clock.pass(LEASE - 1)
      assert.deepEqual(await store.claim(provider, 10, contact), [])
      assert.deepEqual(await store.claim(provider, 10), [])
      clock.pass(1)
      const third = await only(store, provider)
      assert.deepEqual([third.doubt, third.attempts, bare(third.contact)], [true, 2, first.contact])
      assert.equal(await store.settle(second, listed), false)
      assert.equal((await stored(here, t))?.[0]?.events ?? 0, 0)
      assert.equal(await store.settle(third, listed), true)
      for (const settlement of settlements) assert.equal(await store.settle(third, settlement), false)
      assert.equal((await stored(here, t))?.[0]?.events ?? 1, 1)
    })

    test('listed with or without its event, and with the id that the provider gave', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, destinations: ['webhook', 'crm'], clock: clock.read })
      for (const [joined, providerId] of [
        [true, 'p-7'],
        [true, undefined],
        [false, 'p-7'],
        [false, undefined],
      ] as const) {
        const delivery = await pendingNow(store, `${joined}-${providerId}@example.com`)
        const { contact } = delivery
        clock.pass(5_000)
        assert.equal(await store.settle(delivery, { is: 'listed', joined, providerId }), true)
        const [events, deliveries] = joined ? [1, 2] : [0, 0]
        const { id, name, email } = contact
        const expected = { id, name, email, state: 'listed', providerId: providerId ?? null, events, deliveries }
        assert.deepEqual((await stored(here, t))?.at(-1) ?? expected, expected)
        const event = { name: 'waitlist.joined', at: new Date(clock.read()) }
        for (const destination of ['webhook', 'crm']) {
          const claimed = await store.claim(destination, 10)
          assert.deepEqual(
            claimed.map(each => [bare(each.contact), each.attempts, each.doubt]),
            joined ? [[bare({ ...contact, state: 'listed', providerId, event }), 0, false]] : [],
          )
        }
        assert.deepEqual(await store.claim(provider, 10), [])
        assert.deepEqual(await store.admit(signup('Ada', email)), { is: 'already listed' })
      }
    })

    test('a contact that is removed goes with its hand-over, and can sign up again as if new', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, destinations: ['webhook'], clock: clock.read })
      const other = await pendingNow(store, 'bob@example.com', 'Bob')
      const first = await pendingNow(store)
      const contact = await numberOf(store)
      clock.pass(LEASE)
      const refused = await only(store, provider, contact)
      assert.equal(await store.settle(refused, removed), true)
      assert.deepEqual(await store.claim(provider, 10, contact), [])
      const left = await stored(here, t)
      if (left !== null) assert.deepEqual([left.length, left[0]?.deliveries], [1, 1])
      if (here.sql !== undefined) assert.equal((await here.sql('select 1 from delivery')).length, 1)

      const second = await pendingNow(store, 'ADA@example.com', 'Ada Lovelace')
      assert.notEqual(eventId(second.contact, 'joined'), eventId(first.contact, 'joined'))
      assert.ok((await numberOf(store)) > contact)
      assert.deepEqual([second.doubt, second.attempts, second.contact.name], [false, 0, 'Ada Lovelace'])
      for (const token of [first, refused]) assert.equal(await store.settle(token, listed), false)
      assert.equal(await store.settle(second, listed), true)
      assert.equal(await store.settle(other, listed), true)
      assert.deepEqual((await stored(here, t))?.map(({ events }) => events) ?? [1, 1], [1, 1])
    })

    test('one that is abandoned keeps its contact pending, and is due no more', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, clock: clock.read })
      assert.equal(await store.settle(await pendingNow(store), { is: 'abandoned', why: 'given up' }), true)
      const contact = await numberOf(store)
      clock.pass(30 * DAY)
      assert.deepEqual(await store.claim(provider, 10), [])
      assert.deepEqual(await store.claim(provider, 10, contact), [])
      assert.deepEqual(await store.claim(provider, 10, 999_999), [], 'nor what does not exist')
      assert.equal((await stored(here, t))?.[0]?.state ?? 'pending', 'pending')
    })

    test('a claim of one contact ignores due times, but not a lease', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, clock: clock.read })
      const first = await pendingNow(store)
      await pendingNow(store, 'leased@example.com')
      const contact = await numberOf(store)
      await store.settle(first, later(20_000, true))
      assert.deepEqual(await store.claim(provider, 10), [])
      const second = await only(store, provider, contact)
      assert.deepEqual([second.doubt, second.attempts, bare(second.contact)], [true, 1, first.contact])
      assert.notEqual(second.token, first.token)
      assert.deepEqual(await store.claim(provider, 10, contact), [])
      clock.pass(LEASE)
      assert.deepEqual(emailsOf(await store.claim(provider, 10, contact)), ['ada@example.com'])
    })

    test('what was claimed at once is settled at once, each as it ended', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, destinations: ['webhook'], clock: clock.read })
      const who = ['ada', 'bob', 'cyd', 'dot', 'eve']
      const begun = await Promise.all(who.map(each => pendingNow(store, `${each}@example.com`)))
      await Promise.all(begun.map(each => store.settle(each, later(0))))
      const taken = await store.claim(provider, 5)
      const ends: Record<string, Settlement> = {
        'ada@example.com': listed,
        'bob@example.com': { is: 'listed', joined: false },
        'cyd@example.com': removed,
        'dot@example.com': later(DAY),
        'eve@example.com': { is: 'abandoned', why: 'given up' },
      }
      const settled = await Promise.all(taken.map(each => store.settle(each, ends[each.contact.email]!)))
      assert.deepEqual(settled, Array(5).fill(true))
      const now = await Promise.all(who.map(each => store.admit(signup('Again', `${each}@example.com`))))
      assert.deepEqual(
        now.map(({ is }) => is),
        ['already listed', 'already listed', 'pending now', 'still pending', 'still pending'],
      )
      assert.deepEqual(emailsOf(await store.claim('webhook', 10)), ['ada@example.com'])
      const found = (await stored(here, t))?.map(({ email, events, deliveries }) => [email, events, deliveries])
      if (found !== undefined) {
        assert.deepEqual(Object.fromEntries(found.map(([email, ...rest]) => [email, rest])), {
          'ada@example.com': [1, 1],
          'bob@example.com': [0, 0],
          'cyd@example.com': [0, 1],
          'dot@example.com': [0, 1],
          'eve@example.com': [0, 1],
        })
      }
    })
  })

  describe(`a provider that changes, kept by ${name}`, () => {
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
      for (const each of adopted) assert.equal(await second.settle(each, later(0)), true)
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
      const many = isSlow ? 6_000 : 300
      const before = await opened(here, t, { provider: 'a' })
      await Promise.all(Array.from({ length: many }, (_, i) => pendingNow(before, `visitor-${i}@example.com`)))
      await before.close()
      const after = await opened(here, t, { provider: 'b' })
      assert.equal(new Set(numbersOf(await after.claim('b', 10_000))).size, many)
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

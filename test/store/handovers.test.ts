import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEASE, type Settlement } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import {
  bare,
  DAY,
  emailsOf,
  forEachEngine,
  handClock,
  idOf,
  only,
  pendingNow,
  signup,
  stillPending,
  stored,
} from './place.ts'

const provider = 'provider'

const later = (wait: number, doubt = false) =>
  ({ is: 'retry', wait, doubt, why: 'no connection', counts: true }) satisfies Settlement
const listed = { is: 'listed', joined: true } as const
const removed = { is: 'removed', why: 'no such domain' } as const

/** One whose hand-over is due in `wait` milliseconds, and its number. */
async function waiting(store: Store, email: string, wait: number, doubt = false): Promise<number> {
  const delivery = await pendingNow(store, email)
  assert.equal(await store.settle(delivery, later(wait, doubt)), true)
  return delivery.number
}

/** What a store promises about contacts that a provider has yet to confirm, and about a provider that changes meanwhile. */
forEachEngine('hand-overs', place => {
  test('of 300 simultaneous signups with one address one is pending now, and all others learn its number', async t => {
    const store = await (await place(t)).open({ provider })
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, i) => store.admit(signup('Ada', i % 2 ? 'ada@example.com' : 'ADA@example.com'))),
    )
    const [first, ...none] = answers.flatMap(answer => (answer.is === 'pending now' ? [answer.delivery] : []))
    assert.equal(none.length, 0)
    const others = answers.filter(({ is }) => is !== 'pending now')
    const contact = await stillPending(store)
    assert.deepEqual(others, Array(299).fill({ is: 'still pending' }))
    assert.equal(await store.settle(first!, later(DAY)), true)
    assert.equal((await only(store, provider, contact)).number, first!.number)
  })

  test('a claim of one contact ignores due times, but not a lease', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ provider, clock: clock.read })
    const first = await pendingNow(store)
    await pendingNow(store, 'leased@example.com')
    const contact = await stillPending(store)
    await store.settle(first, later(20_000, true))
    assert.deepEqual(await store.claim(provider, 10), [])
    const second = await only(store, provider, contact)
    assert.deepEqual([second.doubt, second.attempts, bare(second.contact)], [true, 1, bare(first.contact)])
    assert.notEqual(second.token, first.token)
    assert.deepEqual(await store.claim(provider, 10, contact), [])
    clock.pass(LEASE)
    assert.deepEqual(emailsOf(await store.claim(provider, 10, contact)), ['ada@example.com'])
  })

  test('what was claimed at once is settled at once, each as it ended', async t => {
    const [here, clock] = [await place(t), handClock()]
    const store = await here.open({ provider, destinations: ['webhook'], clock: clock.read })
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
    const found = (await stored(here)).map(({ email, events, deliveries }) => [email, events, deliveries])
    assert.deepEqual(found.sort(), [
      ['ada@example.com', 1, 1],
      ['bob@example.com', 0, 0],
      ['cyd@example.com', 0, 1],
      ['dot@example.com', 0, 1],
      ['eve@example.com', 0, 1],
    ])
  })
})

forEachEngine('a provider that changes', place => {
  test('those who wait for an earlier provider are handed to the new one, in no doubt, since it was never asked', async t => {
    const [here, clock] = [await place(t), handClock()]
    const open = (name: string) => here.open({ provider: name, destinations: ['webhook'], clock: clock.read })
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
    assert.deepEqual(
      again.map(({ doubt, attempts }) => [doubt, attempts]),
      Array(3).fill([false, 0]),
    )
    for (const each of again) assert.equal(await third.settle(each, { is: 'listed', joined: true }), true)
    const found = (await stored(here)).map(({ state, events, deliveries }) => [state, events, deliveries])
    assert.deepEqual(found, Array(3).fill(['listed', 1, 1]))
    for (const each of adopted) assert.equal(await third.settle(each, { is: 'removed', why: 'late' }), false)
  })

  test('without a provider, those who were pending for an earlier one are listed when they sign up again', async t => {
    const [here, clock] = [await place(t), handClock()]
    const before = await here.open({ provider, clock: clock.read })
    const leased = await pendingNow(before, 'Leased@example.com')
    const waits = await pendingNow(before, 'waits@example.com')
    await before.settle(waits, { is: 'retry', wait: DAY, doubt: true, why: 'no connection', counts: true })
    await pendingNow(before, 'never@example.com')
    const contact = await stillPending(before, 'leased@example.com')
    await before.close()

    const after = await here.open({ destinations: ['webhook'], clock: clock.read })
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
    assert.deepEqual(listed && bare(listed), bare({ ...leased.contact, state: 'listed', event }))
    assert.ok(told.every(each => each.event?.at.getTime() === clock.read()))
    assert.deepEqual(told.map(({ email }) => email).sort(), [
      'Leased@example.com',
      'new@example.com',
      'waits@example.com',
    ])
    const found = (await stored(here)).map(({ email, ...rest }) => [email, rest.state, rest.events, rest.deliveries])
    assert.deepEqual(found.sort(), [
      ['Leased@example.com', 'listed', 1, 1],
      ['never@example.com', 'pending', 0, 1],
      ['new@example.com', 'listed', 1, 1],
      ['waits@example.com', 'listed', 1, 1],
    ])
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEASE, type Settlement } from '../../src/store/outbox.ts'
import { DAY, emailsOf, forEachEngine, handClock, idOf, only, pendingNow, signup, stored } from './place.ts'

const provider = 'provider'
const later = (wait: number, doubt = false) =>
  ({ is: 'retry', wait, doubt, why: 'no connection', counts: true }) satisfies Settlement
const listed = { is: 'listed', joined: true } as const
const emails = ['ada@example.com', 'bob@example.com', 'cyd@example.com']

forEachEngine('hand-overs', place => {
  test('a claim of one contact ignores due times, but not a lease', async t => {
    const clock = handClock()
    const store = await (await place(t)).open({ provider, clock: clock.read })
    const first = await pendingNow(store)
    await pendingNow(store, 'bob@example.com')
    await store.settle(first, later(DAY, true))
    const second = await only(store, provider, 'ada@example.com')
    assert.deepEqual([second.number, second.doubt, second.attempts], [first.number, true, 1])
    assert.notEqual(second.token, first.token)
    assert.deepEqual(await store.claim(provider, 10, 'ada@example.com'), [])
    clock.pass(LEASE)
    assert.deepEqual(emailsOf(await store.claim(provider, 10, 'ada@example.com')), ['ada@example.com'])
  })

  test('what is settled in one batch ends each as it ended', async t => {
    const here = await place(t)
    const store = await here.open({ provider, destinations: ['webhook'] })
    const ends: Record<string, Settlement> = {
      ada: listed,
      bob: { is: 'listed', joined: false },
      cyd: { is: 'removed', why: 'no such domain' },
      dot: later(DAY),
      eve: { is: 'abandoned', why: 'refused' },
    }
    const begun = await Promise.all(Object.keys(ends).map(who => pendingNow(store, `${who}@example.com`)))
    const settled = await Promise.all(begun.map((each, i) => store.settle(each, Object.values(ends)[i]!)))
    assert.ok(settled.every(Boolean))
    assert.deepEqual((await stored(here)).map(({ email, state, events }) => [email, state, events]).sort(), [
      ['ada@example.com', 'listed', 1],
      ['bob@example.com', 'listed', 0],
      ['dot@example.com', 'pending', 0],
      ['eve@example.com', 'pending', 0],
    ])
    assert.deepEqual(emailsOf(await store.claim('webhook', 10)), ['ada@example.com'])
  })

  test('whoever waits for an earlier provider is handed to the new one, in no doubt, since it was never asked', async t => {
    const [here, clock] = [await place(t), handClock()]
    const open = (name: string) => here.open({ provider: name, destinations: ['webhook'], clock: clock.read })
    const first = await open('a')
    for (const [i, email] of emails.entries()) {
      const delivery = await pendingNow(first, email)
      if (i > 0) await first.settle(delivery, later(0, i === 1))
    }
    await first.close()
    clock.pass(LEASE)
    const second = await open('b')
    const adopted = await second.claim('b', 10)
    assert.deepEqual(emailsOf(adopted).sort(), emails)
    assert.ok(adopted.every(({ doubt, attempts }) => !doubt && attempts === 0))
    for (const each of adopted) assert.equal(await second.settle(each, listed), true)
    const found = (await stored(here)).map(({ state, events, deliveries }) => [state, events, deliveries])
    assert.deepEqual(found, Array(3).fill(['listed', 1, 1]))
  })

  test('without a provider, whoever was pending for an earlier one is listed when they sign up again', async t => {
    const here = await place(t)
    const before = await here.open({ provider })
    const leased = await pendingNow(before, 'ada@example.com')
    await before.settle(await pendingNow(before, 'bob@example.com'), later(DAY, true))
    await pendingNow(before, 'cyd@example.com')
    await before.close()

    const after = await here.open({ destinations: ['webhook'] })
    const crowd = Array.from({ length: 20 }, () => after.admit(signup('Eve', 'ADA@example.com')))
    const answers = await Promise.all([...crowd, after.admit(signup('Eve', 'bob@example.com'))])
    assert.equal(answers.filter(({ is }) => is === 'listed now').length, 2)
    assert.equal(answers.map(idOf).filter(id => id === leased.contact.id).length, 1)
    assert.equal(await after.settle(leased, { is: 'removed', why: 'refused' }), false)
    assert.deepEqual(
      (await stored(here)).map(({ email, ...rest }) => [email, rest.state, rest.events, rest.deliveries]),
      [
        ['ada@example.com', 'listed', 1, 1],
        ['bob@example.com', 'listed', 1, 1],
        ['cyd@example.com', 'pending', 0, 1],
      ],
    )
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE, type Registration, type Store } from '../../src/waitlist/ports.ts'
import { begun, handClock, idOf, type MakePlace, opened, pendingNow, signup, stored } from './store.place.ts'

const provider = 'provider'
const DAY = 86_400_000

const emailsOf = (registrations: readonly Registration[]) => registrations.map(({ contact }) => contact.email)
const idsOf = (registrations: readonly Registration[]) => registrations.map(({ contact }) => contact.id)

/** One that is due in `wait` milliseconds, and its address. */
async function waiting(store: Store, email: string, wait: number, doubt = false): Promise<string> {
  const registration = await pendingNow(store, email)
  assert.equal(await store.conclude(registration, { is: 'pending', wait, doubt, why: 'no connection' }), true)
  return registration.contact.id
}

/** What a store promises to whoever completes in the background what is pending. */
export function dueContract(name: string, place: MakePlace): void {
  describe(`what is due, kept by ${name}`, { timeout: 60_000 }, () => {
    test('the longest due come first, at most as many as asked for, and none that is leased', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, clock: clock.read })
      for (const second of [40, 10, 50, 20, 30]) await waiting(store, `due-${second}@example.com`, second * 1_000)
      clock.pass(40_000)
      assert.deepEqual(emailsOf(await store.beginDue(provider, 2, false)), ['due-10@example.com', 'due-20@example.com'])
      assert.deepEqual(emailsOf(await store.beginDue(provider, 10, false)), [
        'due-30@example.com',
        'due-40@example.com',
      ])
      assert.deepEqual(await store.beginDue(provider, 10, false), [])
      clock.pass(10_000)
      assert.deepEqual(emailsOf(await store.beginDue(provider, 10, false)), ['due-50@example.com'])
      clock.pass(LEASE - 10_000)
      const [first] = emailsOf(await store.beginDue(provider, 1, false))
      assert.ok(
        ['due-10@example.com', 'due-20@example.com', 'due-30@example.com', 'due-40@example.com'].includes(first!),
      )
      assert.equal((await store.beginDue(provider, 10, false)).length, 3)
    })

    test('early takes also what is not due yet, after what is, and still none that is leased', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, clock: clock.read })
      await waiting(store, 'last@example.com', 3 * DAY)
      await pendingNow(store, 'leased@example.com')
      await waiting(store, 'later@example.com', DAY)
      await waiting(store, 'due@example.com', 0)
      assert.deepEqual(emailsOf(await store.beginDue(provider, 2, true)), ['due@example.com', 'later@example.com'])
      assert.deepEqual(emailsOf(await store.beginDue(provider, 2, true)), ['last@example.com'])
      assert.deepEqual(await store.beginDue(provider, 2, true), [])
      clock.pass(LEASE)
      const again = await store.beginDue(provider, 10, true)
      assert.equal(again.length, 4)
      assert.ok(again.every(({ doubt }) => doubt))
    })

    test('what was taken at once ends at once, each as it ended', async t => {
      const store = await opened(await place(t), t, { provider })
      for (const who of ['ada', 'bob', 'cyd', 'dot']) await waiting(store, `${who}@example.com`, 0)
      const taken = await store.beginDue(provider, 4, false)
      const postponed = { is: 'pending', wait: DAY, doubt: false, why: 'busy' } as const
      const ends = [{ is: 'created' }, { is: 'existing' }, { is: 'refused' }, postponed] as const
      const concluded = await Promise.all(taken.map((registration, i) => store.conclude(registration, ends[i]!)))
      assert.deepEqual(concluded, [true, true, true, true])
      const now = await Promise.all(taken.map(({ contact }) => store.begin(contact.id, provider)))
      assert.deepEqual(
        now.map(({ is }) => is),
        ['listed', 'listed', 'gone', 'ours'],
      )
    })

    test('doubt about one provider is none about another', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider: 'first', clock: clock.read })
      const one = await waiting(store, 'one@example.com', 0, true)
      const two = await pendingNow(store, 'two@example.com')
      clock.pass(LEASE)
      assert.equal((await begun(store, one, 'second')).doubt, false)
      assert.deepEqual(
        (await store.beginDue('second', 10, false)).map(({ contact, doubt }) => [contact.id, doubt]),
        [[two.contact.id, false]],
      )
      clock.pass(LEASE)
      assert.equal((await begun(store, one, 'second')).doubt, true, 'the second one has begun by now')
    })

    test('hasten makes due what waits, and touches no lease', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, clock: clock.read })
      const ids = [await waiting(store, 'a@example.com', DAY, true), await waiting(store, 'b@example.com', 1_000)]
      const leased = await pendingNow(store, 'leased@example.com')
      await store.hasten()
      const due = await store.beginDue(provider, 10, false)
      assert.deepEqual(idsOf(due).sort(), ids.sort())
      assert.deepEqual(due.map(({ contact, doubt }) => [contact.email, doubt]).sort(), [
        ['a@example.com', true],
        ['b@example.com', false],
      ])
      clock.pass(LEASE - 1)
      await store.hasten()
      assert.deepEqual(await store.beginDue(provider, 10, true), [])
      assert.equal(await store.conclude(leased, { is: 'created' }), true)
    })

    test('hasten leaves none of a great many behind', async t => {
      const store = await opened(await place(t), t, { provider, clock: handClock().read })
      const crowd = Array.from({ length: 6_000 }, (_, i) => pendingNow(store, `visitor-${i}@example.com`))
      const ended = (await Promise.all(crowd)).map(each =>
        store.conclude(each, { is: 'pending', wait: DAY, doubt: false, why: 'no connection' }),
      )
      assert.ok((await Promise.all(ended)).every(Boolean))
      assert.equal((await store.beginDue(provider, 10_000, false)).length, 0)
      await store.hasten()
      assert.equal(new Set(idsOf(await store.beginDue(provider, 10_000, false))).size, 6_000)
    })

    test('a crowd that takes what is due gets each contact exactly once', async t => {
      const store = await opened(await place(t), t, { provider, clock: handClock().read })
      const ids = await Promise.all(
        Array.from({ length: 300 }, (_, i) => waiting(store, `visitor-${i}@example.com`, 0)),
      )
      const taken = await Promise.all(Array.from({ length: 50 }, (_, i) => store.beginDue(provider, 10, i % 2 === 0)))
      assert.ok(taken.every(({ length }) => length <= 10))
      assert.deepEqual(idsOf(taken.flat()).sort(), ids.sort())
    })

    test('of a crowd that asks for one contact, one gets it and the others find it taken', async t => {
      const store = await opened(await place(t), t, { provider, clock: handClock().read })
      const id = await waiting(store, 'ada@example.com', DAY)
      const answers = await Promise.all(Array.from({ length: 50 }, () => store.begin(id, provider)))
      assert.equal(answers.filter(({ is }) => is === 'ours').length, 1)
      assert.equal(answers.filter(({ is }) => is === 'taken').length, 49)
    })

    test('whoever opens it again finds leases, tokens, due times and doubt as they were', async t => {
      const [here, clock] = [await place(t), handClock()]
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t, { provider, clock: clock.read })
      const waits = await waiting(before, 'waits@example.com', 10_000, true)
      const [leased, dead] = [
        await pendingNow(before, 'leased@example.com'),
        await pendingNow(before, 'dead@example.com'),
      ]
      const created = { is: 'created', providerId: 'p-1' } as const
      await before.conclude(await pendingNow(before, 'listed@example.com'), created)
      await before.close()

      const after = await opened(here, t, { provider, clock: clock.read })
      assert.deepEqual(await after.beginDue(provider, 10, false), [])
      assert.deepEqual(await after.begin(dead.contact.id, provider), { is: 'taken' })
      assert.equal(await after.conclude(leased, { is: 'created' }), true)
      clock.pass(10_000)
      const [due] = await after.beginDue(provider, 10, false)
      assert.deepEqual([due?.contact.id, due?.doubt, due?.attempts], [waits, true, 1])
      clock.pass(LEASE - 10_000)
      const [taken] = await after.beginDue(provider, 10, false)
      assert.deepEqual([taken?.contact, taken?.doubt, taken?.attempts], [dead.contact, true, 1])
      const events = { 'waits@example.com': 0, 'leased@example.com': 1, 'dead@example.com': 0, 'listed@example.com': 1 }
      const found = (await stored(here, t))?.map(({ email, events }) => [email, events])
      if (found !== undefined) assert.deepEqual(Object.fromEntries(found), events)
    })

    test('without a provider whoever was pending for an earlier one is listed when he signs up again', async t => {
      const [here, clock] = [await place(t), handClock()]
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t, { provider, clock: clock.read })
      const leased = await pendingNow(before, 'Leased@example.com')
      const waits = await waiting(before, 'waits@example.com', DAY, true)
      await pendingNow(before, 'never@example.com')
      await before.close()

      const after = await opened(here, t, { destinations: ['webhook'], clock: clock.read })
      clock.pass(1_000)
      const crowd = Array.from({ length: 20 }, () => after.admit(signup('Eve', 'LEASED@example.com')))
      const answers = await Promise.all([...crowd, after.admit(signup('Eve', 'waits@example.com'))])
      const now = answers.filter(({ is }) => is !== 'already listed')
      assert.deepEqual(now.map(idOf).sort(), [leased.contact.id, waits].sort())
      assert.equal(await after.conclude(leased, { is: 'refused' }), false)
      assert.equal((await after.admit(signup('New', 'new@example.com'))).is, 'listed now')
      assert.deepEqual(await after.begin(leased.contact.id, provider), { is: 'listed' })

      const events = (await after.claim('webhook', 10)).map(({ event }) => event)
      const listed = events.find(({ contact }) => contact.id === leased.contact.id)?.contact
      assert.deepEqual(listed, { ...leased.contact, state: 'listed' })
      assert.ok(events.every(({ at }) => at.getTime() === clock.read()))
      assert.deepEqual(events.map(({ contact }) => contact.email).sort(), [
        'Leased@example.com',
        'new@example.com',
        'waits@example.com',
      ])
      const found = (await stored(here, t))?.map(({ email, state, events }) => [email, state, events]).sort()
      if (found !== undefined) {
        assert.deepEqual(found, [
          ['Leased@example.com', 'listed', 1],
          ['never@example.com', 'pending', 0],
          ['new@example.com', 'listed', 1],
          ['waits@example.com', 'listed', 1],
        ])
      }
    })
  })
}

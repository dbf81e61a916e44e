import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Conclusion, LEASE, type Registration } from '../../src/waitlist/ports.ts'
import { begun, handClock, type MakePlace, opened, pendingNow, signup, stored, uuidV7 } from './store.place.ts'

const provider = 'provider'
const DAY = 86_400_000

const postponed = (wait: number, doubt = false) =>
  ({ is: 'pending', wait, doubt, why: 'no connection' }) satisfies Conclusion
const conclusions: readonly Conclusion[] = [
  { is: 'created', providerId: 'p-1' },
  { is: 'existing' },
  postponed(0),
  { is: 'refused' },
]

/** What a store promises about contacts that a provider has yet to confirm. */
export function registrationContract(name: string, place: MakePlace): void {
  describe(`registrations, kept by ${name}`, { timeout: 60_000 }, () => {
    test('a new contact is pending now under a lease; then still pending; once listed, already listed', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, destinations: ['webhook'], clock: clock.read })
      const registration = await pendingNow(store, 'Ada@example.com')
      const { contact, token, ...rest } = registration
      const { id } = contact
      assert.match(id, uuidV7)
      const createdAt = new Date(clock.read())
      assert.deepEqual(contact, { id, name: 'Ada', email: 'Ada@example.com', state: 'pending', createdAt })
      assert.notEqual(token, '')
      assert.deepEqual(rest, { doubt: false, attempts: 0 })

      clock.pass(LEASE - 1)
      const again = await store.admit(signup('Eve', 'ADA@example.com'))
      assert.deepEqual(again, { is: 'still pending', contactId: id })
      assert.deepEqual(await store.begin(id, provider), { is: 'taken' })
      assert.deepEqual(await store.beginDue(provider, 10, true), [])
      const contacts = await stored(here, t)
      if (contacts !== null) {
        const pending = { name: 'Ada', email: 'Ada@example.com', state: 'pending', providerId: null }
        assert.deepEqual(contacts, [{ id, ...pending, events: 0, deliveries: 0 }])
      }

      assert.equal(await store.conclude(registration, { is: 'created' }), true)
      assert.deepEqual(await store.admit(signup('Ada', 'ada@example.com')), { is: 'already listed' })
      assert.deepEqual(await store.begin(id, provider), { is: 'listed' })
      assert.deepEqual(await store.beginDue(provider, 10, true), [])
    })

    test('of 300 simultaneous signups with one address one is pending now, and all others learn its id', async t => {
      const store = await opened(await place(t), t, { provider })
      const answers = await Promise.all(
        Array.from({ length: 300 }, (_, i) =>
          store.admit(signup('Ada', i % 2 ? 'ada@example.com' : 'ADA@example.com')),
        ),
      )
      const [first, ...none] = answers.flatMap(answer => (answer.is === 'pending now' ? [answer.registration] : []))
      assert.equal(none.length, 0)
      const others = answers.filter(({ is }) => is !== 'pending now')
      assert.deepEqual(others, Array(299).fill({ is: 'still pending', contactId: first?.contact.id }))
    })

    test('a contact that does not exist is gone', async t => {
      const store = await opened(await place(t), t, { provider })
      assert.deepEqual(await store.begin('01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f', provider), { is: 'gone' })
    })

    test('when a lease is over the next attempt is in doubt, and only its token concludes anything', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, clock: clock.read })
      const first = await pendingNow(store)
      const { id } = first.contact
      clock.pass(LEASE)
      const second = await begun(store, id, provider)
      assert.deepEqual([second.doubt, second.attempts, second.contact], [true, 1, first.contact])
      for (const conclusion of conclusions) assert.equal(await store.conclude(first, conclusion), false)
      clock.pass(LEASE - 1)
      assert.deepEqual(await store.begin(id, provider), { is: 'taken' })
      assert.deepEqual(await store.beginDue(provider, 10, true), [])
      clock.pass(1)
      const [third, ...none] = await store.beginDue(provider, 10, false)
      assert.deepEqual([third?.doubt, third?.attempts, third?.contact, none], [true, 2, first.contact, []])
      assert.equal(await store.conclude(second, { is: 'created' }), false)
      assert.equal((await stored(here, t))?.[0]?.events ?? 0, 0)
      assert.equal(await store.conclude(third!, { is: 'created' }), true)
      for (const conclusion of conclusions) assert.equal(await store.conclude(third!, conclusion), false)
      assert.equal((await stored(here, t))?.[0]?.events ?? 1, 1)
    })

    test('a lease that is over and that nobody took since is still good', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, clock: clock.read })
      const registration = await pendingNow(store)
      clock.pass(DAY)
      assert.equal(await store.conclude(registration, { is: 'created' }), true)
    })

    for (const [conclusion, expected] of [
      [
        { is: 'created', providerId: 'p-7' },
        { providerId: 'p-7', events: 1, deliveries: 2 },
      ],
      [{ is: 'created' }, { providerId: null, events: 1, deliveries: 2 }],
      [
        { is: 'existing', providerId: 'p-7' },
        { providerId: 'p-7', events: 0, deliveries: 0 },
      ],
      [{ is: 'existing' }, { providerId: null, events: 0, deliveries: 0 }],
    ] as const) {
      const { events, deliveries, providerId } = expected
      test(`${JSON.stringify(conclusion)} lists it with ${events} event(s), ${deliveries} deliveries, ${providerId}`, async t => {
        const [here, clock] = [await place(t), handClock()]
        const store = await opened(here, t, { provider, destinations: ['webhook', 'crm'], clock: clock.read })
        const registration = await pendingNow(store)
        const { contact } = registration
        clock.pass(5_000)
        assert.equal(await store.conclude(registration, conclusion), true)
        const contacts = await stored(here, t)
        if (contacts !== null) {
          const { id, name, email } = contact
          assert.deepEqual(contacts, [{ id, name, email, state: 'listed', ...expected }])
        }
        const joined = { ...contact, state: 'listed', ...(providerId === null ? {} : { providerId }) }
        const event = { id: `evt_${contact.id}`, name: 'waitlist.joined', at: new Date(clock.read()), contact: joined }
        for (const destination of ['webhook', 'crm']) {
          const claimed = await store.claim(destination, 10)
          assert.deepEqual(
            claimed.map(({ event }) => event),
            events === 0 ? [] : [event],
          )
        }
        assert.deepEqual(await store.admit(signup('Ada', 'ada@example.com')), { is: 'already listed' })
      })
    }

    test('a contact that is refused is gone, and can sign up again as if new', async t => {
      const [here, clock] = [await place(t), handClock()]
      const store = await opened(here, t, { provider, destinations: ['webhook'], clock: clock.read })
      const other = await pendingNow(store, 'bob@example.com', 'Bob')
      const first = await pendingNow(store)
      clock.pass(LEASE)
      const refused = await begun(store, first.contact.id, provider)
      assert.equal(await store.conclude(refused, { is: 'refused' }), true)
      assert.deepEqual(await store.begin(first.contact.id, provider), { is: 'gone' })
      assert.equal((await stored(here, t))?.length ?? 1, 1)

      const second = await pendingNow(store, 'ADA@example.com', 'Ada Lovelace')
      assert.notEqual(second.contact.id, first.contact.id)
      assert.deepEqual([second.doubt, second.attempts, second.contact.name], [false, 0, 'Ada Lovelace'])
      for (const token of [first, refused]) assert.equal(await store.conclude(token, { is: 'created' }), false)
      assert.equal(await store.conclude(second, { is: 'created' }), true)
      assert.equal(await store.conclude(other, { is: 'created' }), true)
      assert.deepEqual((await stored(here, t))?.map(({ events }) => events) ?? [1, 1], [1, 1])
    })

    for (const doubt of [false, true]) {
      test(`what stays pending is due after its wait; its doubt is as told: ${doubt}`, async t => {
        const [here, clock] = [await place(t), handClock()]
        const store = await opened(here, t, { provider, clock: clock.read })
        let registration = await pendingNow(store)
        for (const attempts of [1, 2, 3]) {
          assert.equal(await store.conclude(registration, postponed(5_000, doubt)), true)
          assert.equal(await store.conclude(registration, { is: 'created' }), false, 'the token is used up')
          clock.pass(4_999)
          assert.deepEqual(await store.beginDue(provider, 10, false), [])
          clock.pass(1)
          const due = await store.beginDue(provider, 10, false)
          assert.deepEqual(
            due.map(({ contact, attempts, doubt }) => ({ id: contact.id, attempts, doubt })),
            [{ id: registration.contact.id, attempts, doubt }],
          )
          registration = due[0]!
        }
        assert.equal((await stored(here, t))?.[0]?.state ?? 'pending', 'pending')
      })
    }

    test('an attempt that called nobody does not count', async t => {
      const clock = handClock()
      const store = await opened(await place(t), t, { provider, clock: clock.read })
      let registration = await pendingNow(store)
      for (let i = 0; i < 3; i++) {
        assert.equal(await store.conclude(registration, { ...postponed(5_000, false), uncalled: true }), true)
        clock.pass(5_000)
        ;[registration] = (await store.beginDue(provider, 10, false)) as [Registration]
        assert.equal(registration.attempts, 0)
      }
    })

    test('whoever asks for one contact gets it before it is due', async t => {
      const store = await opened(await place(t), t, { provider, clock: handClock().read })
      const first = await pendingNow(store)
      await store.conclude(first, postponed(DAY))
      const second = await begun(store, first.contact.id, provider)
      assert.deepEqual([second.doubt, second.attempts], [false, 1])
      assert.notEqual(second.token, first.token)
    })
  })
}

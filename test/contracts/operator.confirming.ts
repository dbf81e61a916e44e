import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'

import type { Delivery } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { ASKED_DISTANCE, ASKED_MOST, eventOf } from '../../src/waitlist/rules/contact.ts'
import { isSlow } from '../harness/slow.ts'
import { course, type Desk, type MakeDesk, openDesk } from './operator.desk.ts'
import { DAY, emailsOf, handClock, only, opened, type PlaceOptions, signup } from './store.place.ts'

const asking = { provider: null, destinations: ['webhook', 'mail'], asks: 'mail' }
const WITHIN = 7 * DAY

/** Signs up somebody who is asked to confirm, now or before. */
async function unconfirmed(store: Store, email = 'ada@example.com'): Promise<{ id: string; asked: boolean }> {
  const admission = await store.admit(signup('Visitor', email))
  assert.equal(admission.is, 'unconfirmed')
  const { contactId: id, asked } = admission as typeof admission & { is: 'unconfirmed' }
  return { id, asked }
}

async function send(store: Store): Promise<readonly Delivery[]> {
  const mails = await store.claim('mail', 10)
  for (const mail of mails) assert.ok(await store.settle(mail, { is: 'delivered' }))
  return mails
}

export function confirmingContract(name: string, make: MakeDesk): void {
  describe(`confirmed addresses in ${name}`, () => {
    test('who signs up is asked by one mail; confirmed once, however often, they join as anybody does', async t => {
      const { store, operator } = await openDesk(make, t, asking)
      const { id, asked } = await unconfirmed(store)
      assert.equal(asked, true)
      const email = 'ada@example.com'
      assert.deepEqual((await operator.counts()).contacts, {
        unconfirmed: 1,
        pending: 0,
        held: 0,
        listed: 0,
        invited: 0,
      })
      assert.deepEqual([await store.countListed(), (await operator.counts()).signups], [0, []])
      assert.equal((await operator.backlog()).unconfirmed, 1)
      assert.deepEqual(await operator.invite({}, undefined, { eventName: 'invited', destinations: ['mail'] }, course), {
        done: 0,
        missing: [],
      })
      assert.deepEqual(await store.claim('webhook', 10), [])
      const mail = await only(store, 'mail')
      assert.deepEqual([mail.event, mail.contact.state, mail.contact.asked?.times], ['asked', 'unconfirmed', 1])
      for (const nobody of [
        { id: id.replace(/^./, 'f'), email },
        { id, email: 'bob@example.com' },
      ]) {
        assert.equal(await store.confirm(nobody), null)
      }
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => store.confirm({ id, email: 'ADA@example.com' })),
      )
      assert.deepEqual(answers.sort(), [...Array(7).fill('before'), 'now'])
      assert.equal(await store.settle(mail, { is: 'delivered' }), false, 'what asked for it is over')
      for (const destination of asking.destinations) {
        const { event, contact } = await only(store, destination)
        assert.deepEqual([event, contact.state, contact.event?.name], ['joined', 'listed', 'waitlist.joined'])
        assert.ok(Math.abs(contact.confirmedAt!.getTime() - Date.now()) < 60_000)
      }
      assert.deepEqual(await store.admit(signup('Ada', email)), { is: 'already listed' })
      assert.equal(await store.expire(0, 10), 0)
    })

    test('with a provider, they are handed over at once when they have confirmed, and not before', async t => {
      const { store } = await openDesk(make, t, { ...asking, provider: 'provider' })
      const { id } = await unconfirmed(store)
      assert.deepEqual(await store.claim('provider', 10), [])
      assert.equal(await store.confirm({ id, email: 'ada@example.com' }), 'now')
      assert.deepEqual(await store.claim('webhook', 10), [])
      const handOver = await only(store, 'provider')
      assert.equal(handOver.contact.state, 'pending')
      await store.settle(handOver, { is: 'listed', joined: true })
      const { contact } = await only(store, 'webhook')
      assert.ok(contact.confirmedAt !== undefined)
    })

    test('once nobody has to confirm, who was asked goes on, and is not kept as confirmed', async t => {
      const { store, place } = await openDesk(make, t, asking)
      const { id } = await unconfirmed(store)
      await store.close()
      const later = await opened(place, t, { ...asking, asks: null })
      assert.deepEqual(await unconfirmed(later), { id, asked: false })
      assert.equal(await later.confirm({ id, email: 'ada@example.com' }), 'now')
      const { contact } = await only(later, 'webhook')
      assert.deepEqual([contact.state, contact.confirmedAt], ['listed', undefined])
    })

    test('of many who type one address at once, one is new; those above the limit are held, and get no mail', async t => {
      const holds = { above: 2, window: 60_000, suspicious: false }
      const desk = await openDesk(make, t, { ...asking, holds })
      const { store, operator } = desk
      const crowd = await Promise.all(
        Array.from({ length: 24 }, (_, i) => store.admit(signup('V', `v${i % 3}@example.com`))),
      )
      assert.equal(crowd.filter(each => each.is === 'unconfirmed' && each.asked).length, 2)
      assert.equal(crowd.filter(({ is }) => is === 'held now').length, 1)
      assert.equal((await send(store)).length, 2)
      const announcement = { eventName: 'waitlist.joined', ...asking }
      assert.deepEqual(await operator.release({}, announcement, course), { done: 1, missing: [] })
      const [mail] = await send(store)
      assert.deepEqual([mail?.event, mail?.contact.asked?.times], ['asked', 1])
      assert.equal(await store.confirm(mail!.contact), 'now')
    })

    test('an import keeps the state and mails nobody; announced, it asks', async t => {
      const { store, operator, sql } = await openDesk(make, t, asking)
      const { id } = await unconfirmed(store)
      const { id: other } = await unconfirmed(store, 'bob@example.com')
      await store.confirm({ id: other, email: 'bob@example.com' })
      const known = await Array.fromAsync(await operator.contacts())
      const batches = async function* () {
        yield known.map(({ name, email, ...rest }) => ({ ...rest, signup: signup(name, email) }))
      }
      const add = async (announcement: typeof news | null) => {
        await sql('delete from contact')
        const wish = { announcement, dryRun: false, made() {}, ...course }
        assert.equal((await operator.importContacts(batches(), wish)).added, 2)
      }
      const news = { eventName: 'waitlist.joined', ...asking }
      await add(null)
      assert.deepEqual(await store.claim('mail', 10), [])
      const again = await Array.fromAsync(await operator.contacts())
      const said = (all: typeof again) => all.map(({ id, state, confirmedAt }) => ({ id, state, confirmedAt }))
      assert.deepEqual(said(again), said(known))
      assert.equal(await store.confirm({ id, email: 'ada@example.com' }), 'now')
      await add(news)
      assert.deepEqual(emailsOf(await send(store)), ['ada@example.com', 'bob@example.com'])
      assert.deepEqual(await store.claim('webhook', 10), [])
    })

    test('any history: mails, confirmations and expiries are those of a simple model, also across restarts', async t => {
      const desk = await make(t)
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async steps => {
          await runHistory(t, desk, steps)
        }),
        { numRuns: isSlow ? 12 : 3, examples: [[tooMany], [late]] },
      )
    })
  })
}

type Step =
  | { readonly do: 'sign up' | 'confirm' | 'leave' | 'use an old link'; readonly who: number }
  | { readonly do: 'pass'; readonly time: number }
  | { readonly do: 'send' | 'expire' | 'restart' }

const who = fc.integer({ min: 0, max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('sign up' as const), who }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('confirm', 'leave', 'use an old link'), who }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      time: fc.constantFrom(1_000, ASKED_DISTANCE - 1, ASKED_DISTANCE, DAY, WITHIN, WITHIN + 1),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('send', 'send', 'expire', 'restart') }) },
)

/** Repeated more often than anybody is asked. */
const tooMany = Array.from({ length: ASKED_MOST + 1 }, (): Step[] => [
  { do: 'sign up', who: 0 },
  { do: 'send' },
  { do: 'pass', time: ASKED_DISTANCE },
]).flat()
/** Mailed a week late. */
const late: Step[] = [
  { do: 'sign up', who: 0 },
  { do: 'pass', time: WITHIN + 1 },
  { do: 'expire' },
  { do: 'send' },
  { do: 'pass', time: DAY },
  { do: 'expire' },
  { do: 'pass', time: WITHIN },
  { do: 'expire' },
  { do: 'sign up', who: 0 },
  { do: 'use an old link', who: 0 },
]

/** What the model knows of somebody who is on the list. */
interface Person {
  readonly id: string
  state: 'unconfirmed' | 'listed'
  askedAt: number
  asks: number
  /** When the last mail was sent; null: it waits. */
  sentAt: number | null
}

async function runHistory(t: TestContext, { place, sql }: Desk, steps: readonly Step[]): Promise<void> {
  const clock = handClock()
  const options: PlaceOptions = { ...asking, destinations: ['webhook'], clock: clock.read }
  let store = await opened(place, t, options)
  await sql('delete from contact')
  const people = new Map<string, Person>()
  const former = new Map<string, string>()
  const mailed = new Set<string>()
  try {
    for (const step of steps) {
      const now = clock.read()
      const email = 'who' in step ? `v${step.who}@example.com` : ''
      const person = people.get(email)
      switch (step.do) {
        case 'sign up': {
          const admission = await store.admit(signup('Visitor', email))
          if (person?.state === 'listed') {
            assert.equal(admission.is, 'already listed')
            break
          }
          assert.ok(admission.is === 'unconfirmed')
          const mayAsk = person !== undefined && person.asks < ASKED_MOST && now - person.askedAt >= ASKED_DISTANCE
          const asked = person === undefined || (mayAsk && person.sentAt !== null)
          assert.equal(admission.asked, asked)
          if (person === undefined) {
            assert.notEqual(admission.contactId, former.get(email))
            const made = { id: admission.contactId, state: 'unconfirmed', askedAt: now, asks: 1, sentAt: null } as const
            people.set(email, { ...made })
          } else {
            assert.equal(admission.contactId, person.id)
            if (asked) Object.assign(person, { askedAt: now, asks: person.asks + 1, sentAt: null })
          }
          break
        }
        case 'send': {
          const mails = await send(store)
          const waiting = [...people].filter(([, each]) => each.state === 'unconfirmed' && each.sentAt === null)
          assert.deepEqual(emailsOf(mails).toSorted(), waiting.map(([email]) => email).toSorted())
          for (const mail of mails) {
            const { id } = eventOf(mail.contact, mail.event)
            assert.ok(!mailed.has(id), 'each mail has an id of its own')
            mailed.add(id)
          }
          for (const [, each] of waiting) each.sentAt = now
          break
        }
        case 'confirm':
          if (person === undefined) break
          assert.equal(await store.confirm({ id: person.id, email }), person.state === 'listed' ? 'before' : 'now')
          person.state = 'listed'
          break
        case 'leave':
          if (person === undefined) break
          assert.equal(await store.leave(email), true)
          former.set(email, person.id)
          people.delete(email)
          break
        case 'use an old link': {
          const id = former.get(email)
          if (id === undefined) break
          assert.equal(await store.confirm({ id, email }), null)
          break
        }
        case 'expire': {
          const isLate = ({ state, askedAt, sentAt }: Person) =>
            state === 'unconfirmed' && now - askedAt > WITHIN && sentAt !== null && now - sentAt > WITHIN
          const late = [...people].filter(([, each]) => isLate(each))
          assert.equal(await store.expire(WITHIN, 10), late.length)
          for (const [email, { id }] of late) {
            former.set(email, id)
            people.delete(email)
          }
          break
        }
        case 'restart':
          await store.close()
          store = await opened(place, t, options)
          break
        case 'pass':
          clock.pass(step.time)
      }
    }
    clock.pass(1)
    const told = await store.claim('webhook', 10)
    const listed = [...people].filter(([, { state }]) => state === 'listed').map(([email]) => email)
    assert.deepEqual(emailsOf(told).toSorted(), listed.toSorted(), 'each who confirmed has one event')
  } finally {
    await store.close()
  }
}

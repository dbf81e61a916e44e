import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Announcement } from '../../src/stores/operator/announcement.ts'
import type { HeldFilter } from '../../src/stores/operator/held.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { course, type Desk, type MakeDesk, openDesk } from './operator.desk.ts'
import { emailsOf, opened, signup } from './store.place.ts'

/** Everybody is held. */
const holds = { above: 0, window: 3_600_000, suspicious: false }
const destinations = ['webhook', 'crm']
const alone: Announcement = { eventName: 'waitlist.joined', provider: null, destinations, asks: null }
const behind: Announcement = { ...alone, provider: 'provider' }

const visitors = (count: number) => Array.from({ length: count }, (_, i) => `visitor-${i}@example.com`)

async function hold(store: Store, emails: readonly string[]): Promise<void> {
  const answers = await Promise.all(emails.map(email => store.admit(signup('Visitor', email))))
  for (const answer of answers) assert.deepEqual(answer, { is: 'held now', reason: 'above-limit' })
}

/** Those that are held, the first one first. */
const heldIn = async ({ operator }: Desk) =>
  (await Array.fromAsync(await operator.contacts({ state: 'held' }))).map(({ email }) => email)

/** What an operator can do with held contacts. */
export function holdingContract(name: string, make: MakeDesk): void {
  describe(`held contacts in ${name}`, () => {
    test('without a provider, who is released is listed like a new signup: with an event, told to all, in order', async t => {
      const desk = await openDesk(make, t, { holds, provider: null, destinations })
      const { store } = desk
      for (const email of visitors(5)) await hold(store, [email])
      assert.deepEqual(await desk.operator.release({}, alone, course), { done: 5, missing: [] })
      for (const destination of destinations) {
        const claimed = await store.claim(destination, 10)
        assert.deepEqual(emailsOf(claimed), visitors(5))
        for (const { contact, attempts, doubt } of claimed) {
          assert.deepEqual([contact.state, contact.reason, attempts, doubt], ['listed', undefined, 0, false])
          assert.equal(contact.event?.name, 'waitlist.joined')
          assert.ok(Math.abs(Date.now() - contact.event.at.getTime()) < 60_000)
        }
      }
      assert.deepEqual(await desk.operator.release({}, alone, course), { done: 0, missing: [] })
      assert.deepEqual(await store.admit(signup('Visitor', 'visitor-1@example.com')), { is: 'already listed' })
    })

    test('with one, they are pending and handed over in order; a signup of one of them finds its hand-over', async t => {
      const desk = await openDesk(make, t, { holds, destinations })
      const { store } = desk
      for (const email of visitors(5)) await hold(store, [email])
      assert.deepEqual(await desk.operator.release({}, behind, course), { done: 5, missing: [] })
      assert.deepEqual(await store.claim('webhook', 10), [])
      const again = await store.admit(signup('Visitor', 'visitor-3@example.com'))
      assert.ok(again.is === 'still pending')
      const [own] = await store.claim('provider', 1, again.contact)
      assert.equal(own?.contact.email, 'visitor-3@example.com')
      const others = await store.claim('provider', 10)
      const rest = visitors(5).filter(email => email !== own.contact.email)
      assert.deepEqual(emailsOf(others), rest)
      for (const each of [own, ...others]) await store.settle(each, { is: 'listed', joined: true })
      assert.equal((await store.claim('webhook', 10)).length, 5)
    })

    test('addresses in any spelling, a reason and a time say which; who is not held is named', async t => {
      const desk = await openDesk(make, t, { holds, provider: null })
      const { store } = desk
      for (const email of visitors(6)) await hold(store, [email])
      await desk.sql(
        "update contact set reason = 'same-mailbox' where email in ('visitor-1@example.com', 'visitor-4@example.com')",
      )
      await desk.sql(`update contact set created_at = ${desk.time(Date.now() - 7_200_000)} where email < 'visitor-3'`)
      const release = (which: HeldFilter) => desk.operator.release(which, alone, course)
      const until = new Date(Date.now() - 3_600_000)
      const wish = { until, reason: 'same-mailbox', addresses: visitors(6) } as const
      assert.equal((await desk.operator.countHeld(wish)).total, 1)
      assert.equal((await release(wish)).done, 1)
      assert.deepEqual(
        await heldIn(desk),
        visitors(6).filter((_, i) => i !== 1),
      )
      const addresses = ['VISITOR-0@Example.com', 'visitor-1@example.com', 'nobody@example.com']
      assert.deepEqual(await release({ addresses }), {
        done: 1,
        missing: [
          { address: 'visitor-1@example.com', state: 'listed' },
          { address: 'nobody@example.com', state: null },
        ],
      })
      assert.deepEqual(await release({ until }), { done: 1, missing: [] })
      assert.deepEqual(await desk.operator.discard({ reason: 'same-mailbox' }, course), { done: 1, missing: [] })
      assert.deepEqual(await heldIn(desk), ['visitor-3@example.com', 'visitor-5@example.com'])
      assert.equal((await desk.operator.discard({ reason: 'unverified' }, course)).done, 0)
      assert.equal((await desk.operator.discard({ addresses: [] }, course)).done, 0, 'nobody is not everybody')
    })

    test('a domain says which, case-insensitive and without those below it', async t => {
      const desk = await openDesk(make, t, { holds, provider: null })
      const { store } = desk
      const emails = ['a@Mail.Example', 'b@mail.example', 'c@sub.mail.example', 'd@mail.example.org']
      for (const email of emails) await hold(store, [email])
      assert.deepEqual((await desk.operator.countHeld({ domain: 'sub.mail.example' })).domains, [
        { domain: 'sub.mail.example', count: 1 },
      ])
      const domain = 'MAIL.example'
      assert.equal((await desk.operator.discard({ domain, reason: 'unverified' }, course)).done, 0)
      assert.deepEqual(await desk.operator.release({ domain }, alone, course), { done: 2, missing: [] })
      assert.deepEqual(await heldIn(desk), emails.slice(2))
    })

    test('they are counted by reason, domain and hour, without those who are on the list', async t => {
      const desk = await make(t)
      const none = { total: 0, since: null, reasons: [], domains: [], hours: [] }
      const open = await opened(desk.place, t)
      await open.admit(signup('Ada', 'ada@example.com'))
      await open.close()
      assert.deepEqual(await desk.operator.countHeld({}), none)
      const store = await opened(desk.place, t, { holds })
      await hold(store, [...visitors(3), 'a@Mail.Example', 'b@mail.example', 'c@mail.example', 'd@mail.example'])
      const noon = Date.UTC(2026, 0, 1, 12)
      await desk.sql(`update contact set created_at = ${desk.time(noon + 59 * 60_000)}`)
      await desk.sql(
        `update contact set created_at = ${desk.time(noon - 1)} where email like 'c@%' or email like 'd@%'`,
      )
      await desk.sql("update contact set reason = 'unverified' where email like 'd@%'")
      assert.deepEqual(await desk.operator.countHeld({}), {
        total: 7,
        since: new Date(noon - 1),
        reasons: [
          { reason: 'above-limit', count: 6 },
          { reason: 'unverified', count: 1 },
        ],
        domains: [
          { domain: 'mail.example', count: 4 },
          { domain: 'example.com', count: 3 },
        ],
        hours: [
          { from: new Date(noon - 3_600_000), count: 2 },
          { from: new Date(noon), count: 5 },
        ],
      })
      assert.deepEqual((await desk.operator.countHeld({ reason: 'unverified' })).hours, [
        { from: new Date(noon - 3_600_000), count: 1 },
      ])
    })

    test('who is discarded is gone, but not erased: the same address signs up anew', async t => {
      const desk = await openDesk(make, t, { holds, provider: null })
      const { store } = desk
      await hold(store, visitors(3))
      const addresses = ['visitor-1@example.com']
      assert.deepEqual(await desk.operator.discard({ addresses }, course), { done: 1, missing: [] })
      assert.deepEqual(await desk.operator.discard({ addresses }, course), {
        done: 0,
        missing: addresses.map(address => ({ address, state: null })),
      })
      const { contact, erasedAt } = await desk.operator.person('visitor-1@example.com')
      assert.deepEqual([contact, erasedAt], [undefined, undefined])
      await hold(store, addresses)
      assert.equal((await desk.operator.discard({}, course)).done, 3)
      assert.deepEqual(await desk.sql('select 1 from contact union all select 1 from delivery'), [])
    })

    test('only the held are touched: not who is pending, listed or held since it began', async t => {
      const desk = await make(t)
      const open = await opened(desk.place, t, { provider: 'provider', destinations })
      for (const who of ['ada', 'bob']) await open.admit(signup(who, `${who}@example.com`))
      await open.close()
      const store = await opened(desk.place, t, { holds })
      await hold(store, visitors(300))
      let later: Promise<void> | undefined
      const progress = () => {
        later ??= hold(store, ['later@example.com'])
      }
      assert.equal((await desk.operator.discard({}, { ...course, progress })).done, 300)
      await later
      assert.deepEqual(await heldIn(desk), ['later@example.com'])
      const states = await desk.sql('select state from contact order by number')
      assert.deepEqual(
        states.map(({ state }) => state),
        ['pending', 'pending', 'held'],
      )
    })

    test('two releases and the signups of the same people at once: each has one event, and was released once', async t => {
      const desk = await make(t)
      const emails = visitors(400)
      const store = await opened(desk.place, t, { holds, destinations: ['webhook'] })
      await hold(store, emails)
      const release = () => desk.operator.release({}, { ...alone, destinations: ['webhook'] }, course)
      const [one, two, ...answers] = await Promise.all([
        release(),
        release(),
        ...emails.map(email => store.admit(signup('Again', email))),
      ])
      assert.equal(one.done + two.done, 400)
      assert.ok(answers.every(({ is }) => is === 'still held' || is === 'already listed'))
      const claimed = await store.claim('webhook', 1_000)
      assert.equal(new Set(emailsOf(claimed)).size, 400)
      assert.equal(claimed.length, 400)
    })

    test('it is stopped between two steps: what was done stays, the rest is held, and the next call does it', async t => {
      const desk = await openDesk(make, t, { holds, provider: null, destinations: ['webhook'] })
      const { store } = desk
      await hold(store, visitors(300))
      const order = await heldIn(desk)
      const leaving = new AbortController()
      const seen: number[] = []
      const progress = (now: number) => {
        seen.push(now)
        leaving.abort()
      }
      const { done } = await desk.operator.release({}, alone, { progress, signal: leaving.signal })
      assert.ok(done > 0 && done < 300, `${done} were released`)
      assert.deepEqual(seen, [done])
      assert.deepEqual(await heldIn(desk), order.slice(done))
      assert.equal((await desk.operator.release({}, alone, course)).done, 300 - done)
      assert.deepEqual(emailsOf(await store.claim('webhook', 1_000)), order)
    })
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { HeldFilter } from '../../src/holds/store.ts'
import { discard } from '../../src/holds/store.ts'
import type { SignupTargets } from '../../src/store/activate.ts'
import type { Database } from '../../src/store/database.ts'
import type { Store } from '../../src/store/store.ts'
import { emailsOf, forEachEngine, type Place, signup } from '../store/place.ts'

/** Everybody is held. */
const holds = { above: { count: 0, time: 3_600_000 }, suspicious: false }
const destinations = ['webhook', 'crm']
const alone: SignupTargets = { eventName: 'waitlist.joined', provider: null, destinations, confirmation: null }

const visitors = (count: number) => Array.from({ length: count }, (_, i) => `visitor-${i}@example.com`)

async function hold(store: Store, emails: readonly string[]): Promise<void> {
  for (const email of emails) {
    const answer = await store.admit(signup('Visitor', email))
    assert.deepEqual(answer, { is: 'held now', reason: 'above-limit' })
  }
}

/** The first one first. */
const heldIn = async ({ operator }: Place) =>
  (await Array.fromAsync(operator.contacts({ state: 'held' }))).map(({ email }) => email)

forEachEngine('held contacts', place => {
  test('without a provider, who is released is listed like a new signup: with an event, to all, in order', async t => {
    const { operator, open } = await place(t)
    const store = await open({ holds, destinations })
    await hold(store, visitors(5))
    assert.deepEqual(await operator.release({}, alone), { done: 5, missing: [] })
    for (const destination of destinations) {
      const claimed = await store.claim(destination, 10)
      assert.deepEqual(emailsOf(claimed), visitors(5))
      for (const { contact, attempts, doubt } of claimed) {
        assert.deepEqual([contact.state, contact.reason, attempts, doubt], ['listed', undefined, 0, false])
        assert.equal(contact.event?.name, 'waitlist.joined')
        assert.ok(Math.abs(Date.now() - contact.event.at.getTime()) < 60_000)
      }
    }
    assert.deepEqual(await operator.release({}, alone), { done: 0, missing: [] })
    assert.deepEqual(await store.admit(signup('Visitor', 'visitor-1@example.com')), { is: 'already listed' })
  })

  test('addresses in any spelling, a reason and a time say which; who is not held is named; they are counted', async t => {
    const here = await place(t)
    const { operator } = here
    const store = await here.open({ holds })
    assert.deepEqual(await operator.countHeld({}), { total: 0, since: null, reasons: [] })
    await hold(store, visitors(6))
    const [early, late] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-01T01:00:00Z')]
    await here.sql("update contact set reason = 'same-mailbox' where email like '%-1@%' or email like '%-4@%'")
    await here.sql('update contact set created_at = $1', [late.getTime()])
    await here.sql("update contact set created_at = $1 where email < 'visitor-3'", [early.getTime()])
    const counts = await operator.countHeld({})
    assert.deepEqual([counts.total, counts.since], [6, early])
    assert.deepEqual(
      counts.reasons.map(({ reason, count }) => [reason, count]),
      [
        ['above-limit', 4],
        ['same-mailbox', 2],
      ],
    )
    const release = (filter: HeldFilter) => operator.release(filter, alone)
    const filter = { until: late, reason: 'same-mailbox', addresses: visitors(6) } as const
    assert.equal((await operator.countHeld(filter)).total, 1)
    assert.equal((await release(filter)).done, 1)
    const addresses = ['VISITOR-0@Example.com', 'visitor-1@example.com', 'nobody@example.com']
    assert.deepEqual(await release({ addresses }), {
      done: 1,
      missing: [
        { address: 'visitor-1@example.com', state: 'listed' },
        { address: 'nobody@example.com', state: null },
      ],
    })
    assert.deepEqual(await release({ until: late }), { done: 1, missing: [] })
    assert.deepEqual(await operator.discard({ reason: 'same-mailbox' }), { done: 1, missing: [] })
    assert.deepEqual(await heldIn(here), ['visitor-3@example.com', 'visitor-5@example.com'])
    assert.equal((await operator.discard({ reason: 'unverified' })).done, 0)
    assert.equal((await operator.discard({ addresses: [] })).done, 0, 'nobody is not everybody')
  })

  test('who is discarded is gone, but not erased; only the held are touched, not those since it began', async t => {
    const here = await place(t)
    const before = await here.open({ provider: 'provider' })
    await before.admit(signup('Ada', 'ada@example.com'))
    await before.close()
    const store = await here.open({ holds })
    await hold(store, visitors(3))
    let later: Promise<void> | undefined
    const { done } = await here.command(database => {
      const transaction: Database['transaction'] = async (...step) => {
        const changed = await database.transaction(...step)
        later ??= hold(store, ['later@example.com'])
        await later
        return changed
      }
      return discard({ ...database, transaction }, {})
    })
    assert.equal(done, 3)
    assert.deepEqual(await heldIn(here), ['later@example.com'])
    assert.deepEqual((await here.operator.counts()).contacts.pending, 1)
    await hold(store, visitors(3))
  })

  test('two releases and the signups of the same people at once: each has one event', async t => {
    const here = await place(t)
    const emails = visitors(1_200)
    const store = await here.open({ holds, destinations: ['webhook'] })
    await Promise.all(emails.map(email => store.admit(signup('Visitor', email))))
    const order = await heldIn(here)
    const targets = { ...alone, destinations: ['webhook'] }
    const release = () => here.operator.release({}, targets)
    const [one, two, ...answers] = await Promise.all([
      release(),
      nextTurn().then(release),
      ...emails.map(email => store.admit(signup('Again', email))),
    ])
    assert.equal(one.done + two.done, 1_200)
    assert.ok(answers.every(({ is }) => is === 'still held' || is === 'already listed'))
    assert.deepEqual(emailsOf(await store.claim('webhook', 2_000)), order)
  })
})

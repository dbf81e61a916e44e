/**
 * The connection is lost after every message of every exchange that writes, in both directions, or nothing more is heard of
 * it. Whatever was lost, the answer is true: what is said to be done was done, once.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Delivery, type Digest, LEASE, type Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { type Admission, StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { DAY, emailsOf, numberOf, only, pendingNow, signup } from '../contracts/store.place.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn, endLeasesAt, rowsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { stagesOn } from './postgres.stage.ts'

const provider = 'provider'
const server = await sharedPostgres()
const stage = stagesOn(server)

interface Exchange<Begun, Answer> {
  readonly provider?: string
  begin(store: Store, email: string): Promise<Begun>
  /** Made while the connection is cut. */
  cut(store: Store, email: string, begun: Begun): Promise<Answer>
  /** Whether the answer is true, and what comes of it. */
  holds(store: Store, answer: Answer, begun: Begun): Promise<unknown>
  /** Whether the answer is that there is nothing to take: the lost try may be under way on the server, and hold it. */
  readonly tookNothing?: (answer: Answer) => boolean
  /** That it has afterwards. */
  readonly events: number | 'gone'
  /** Only in slow tests: another one is of the same kind, or the same statement with other values. */
  readonly slow?: boolean
}
const exchange = <Begun, Answer>(parts: Exchange<Begun, Answer>) => parts as Exchange<unknown, unknown>

const slowly = (each: Exchange<unknown, unknown>) => ({ ...each, slow: true })

const listed = { is: 'listed', joined: true, providerId: 'p-1' } as const
const later = { is: 'waiting', wait: 0, doubt: false, why: 'no connection' } as const
const soon = { is: 'waiting', wait: 20_000, doubt: true, why: 'timed out' } as const

/** Leased as if for the first time, and it can be ended. */
async function isOurs(store: Store, delivery: Delivery | undefined, attempts: number): Promise<void> {
  assert.deepEqual([delivery?.attempts, delivery?.doubt], [attempts, false])
  assert.equal(await store.settle(delivery!, listed), true)
  assert.equal(await store.settle(await only(store), { is: 'delivered' }), true)
}

/** Somebody whose hand-over waits, by the number of the contact. */
async function waiting(store: Store, email: string): Promise<number> {
  assert.equal(await store.settle(await pendingNow(store, email), later), true)
  return numberOf(store, email)
}

/** The end of a hand-over. */
const handedOver = (settlement: Settlement, events: number | 'gone') =>
  exchange<Delivery, boolean>({
    provider,
    events,
    begin: pendingNow,
    cut: (store, _, delivery) => store.settle(delivery, settlement),
    async holds(store, answer, delivery) {
      const { email } = delivery.contact
      assert.equal(answer, true)
      for (const each of [listed, soon]) {
        assert.equal(await store.settle(delivery, each), false, 'the token is used up')
      }
      assert.deepEqual(await store.claim(provider, 10), [])
      const told = await store.claim('webhook', 10)
      assert.deepEqual(emailsOf(told), events === 1 ? [email] : [])
      for (const each of told) await store.settle(each, { is: 'delivered' })
      if (settlement.is !== 'waiting') return
      const again = await only(store, provider, await numberOf(store, email))
      assert.deepEqual([again.attempts, again.doubt], [settlement.uncounted ? 0 : 1, settlement.doubt])
    },
  })

/** The end of a delivery of an event. */
const told = (settlement: Settlement) =>
  exchange<Delivery, boolean>({
    async begin(store, email) {
      await store.admit(signup('Ada', email))
      return only(store)
    },
    cut: (store, _, delivery) => store.settle(delivery, settlement),
    async holds(store, answer, delivery) {
      assert.equal(answer, true)
      assert.equal(await store.settle(delivery, { is: 'delivered' }), false, 'the token is used up')
      assert.deepEqual(await store.claim('webhook', 10), [])
    },
    events: 1,
  })

const exchanges: Record<string, Exchange<unknown, unknown>> = {
  'admit, listed at once': exchange<void, Admission>({
    begin: async () => {},
    cut: (store, email) => store.admit(signup('Ada', email)),
    holds: async (_, answer) => assert.equal(answer.is, 'listed now'),
    events: 1,
  }),
  'admit, pending': exchange<void, Delivery>({
    provider,
    begin: async () => {},
    cut: (store, email) => pendingNow(store, email),
    holds: (store, answer) => isOurs(store, answer, 0),
    events: 1,
  }),
  'claim the hand-over of one contact': exchange<number, readonly Delivery[]>({
    provider,
    begin: waiting,
    cut: (store, _, contact) => store.claim(provider, 1, contact),
    tookNothing: ({ length }) => length === 0,
    holds: (store, answer) => isOurs(store, answer[0], 1),
    events: 1,
  }),
  'claim hand-overs that are due': slowly(
    exchange<number, readonly Delivery[]>({
      provider,
      begin: waiting,
      cut: store => store.claim(provider, 10),
      tookNothing: ({ length }) => length === 0,
      holds: (store, answer) => isOurs(store, answer[0], 1),
      events: 1,
    }),
  ),
  'claim deliveries of events': slowly(
    exchange<Admission, readonly Delivery[]>({
      begin: (store, email) => store.admit(signup('Ada', email)),
      cut: store => store.claim('webhook', 10),
      tookNothing: ({ length }) => length === 0,
      async holds(store, [delivery, ...more]) {
        assert.deepEqual([delivery?.attempts, delivery?.doubt, more], [0, false, []])
        assert.equal(await store.settle(delivery!, { is: 'delivered' }), true)
      },
      events: 1,
    }),
  ),
  'claim a digest': slowly(
    exchange<Admission, Digest | number | null>({
      begin: (store, email) => store.admit(signup('Ada', email)),
      cut: store => store.claimDigest('webhook', 10, 1),
      // The turn of a lost try is given back later, too.
      tookNothing: answer => answer === null || typeof answer === 'number',
      async holds(store, answer) {
        const { attempts, doubtful, deliveries } = answer as Digest
        assert.deepEqual([attempts, doubtful, deliveries.length], [0, 0, 1])
        assert.equal(await store.settleDigest(answer as Digest, { is: 'delivered' }, 1), true)
        await wait(5)
      },
      events: 1,
    }),
  ),
  'settle a digest': slowly(
    exchange<Digest, boolean>({
      async begin(store, email) {
        await store.admit(signup('Ada', email))
        return (await store.claimDigest('webhook', 10, 1)) as Digest
      },
      cut: (store, _, digest) => store.settleDigest(digest, { is: 'delivered' }, 1),
      async holds(store, answer, digest) {
        assert.equal(answer, true)
        assert.equal(await store.settleDigest(digest, soon, 1), false, 'the token is used up')
        await wait(5)
        assert.equal(await store.claimDigest('webhook', 10, 1), null)
      },
      events: 1,
    }),
  ),
  'settle a hand-over: listed with its event': handedOver(listed, 1),
  'settle a hand-over: removed': slowly(handedOver({ is: 'removed', why: 'no such domain' }, 'gone')),
  'settle a hand-over: waiting': slowly(handedOver(soon, 0)),
  'settle a delivery: delivered': told({ is: 'delivered' }),
}

const MESSAGES = ['frontend Execute', 'frontend Sync', 'backend CommandComplete', 'backend ReadyForQuery']

describe('a connection that is cut after any message', { timeout: 120_000, concurrency: 3 }, () => {
  for (const [name, { provider, begin, cut, tookNothing, holds, events, slow }] of Object.entries(exchanges)) {
    test(name, { skip: slow && !isSlow && 'it runs in .ci/run' }, async t => {
      const { proxy, url, open } = await stage(t)
      const store = await open(true, provider)
      const cuts: string[] = []
      for (let number = 1; ; number++) {
        const email = `visitor-${number}@example.com`
        const begun = await begin(store, email)
        proxy.after(number, 'cut')
        let answer = await cut(store, email, begun)
        const last = proxy.end()
        // What the server had heard in full it may finish after the next try: that lease is given back, later.
        while (last?.side === 'frontend' && tookNothing?.(answer)) {
          await wait(100)
          answer = await cut(store, email, begun)
        }
        await holds(store, answer, begun)
        const kept = (await contactsIn(url)).filter(each => each.email === email)
        assert.deepEqual(
          kept.map(({ events }) => events),
          events === 'gone' ? [] : [events],
        )
        if (last === undefined) break
        cuts.push(`${last.side} ${last.name}`)
      }
      t.diagnostic(cuts.join(', '))
      for (const needed of MESSAGES) assert.ok(cuts.includes(needed), `never cut after ${needed}`)
    })
  }

  test('someone who waits for a provider that is no more is listed now, once', async t => {
    const { proxy, url, open } = await stage(t)
    const [before, store] = [await open(false, provider), await open(true)]
    for (let number = 1, last = {} as object | undefined; last !== undefined; number++) {
      const email = `visitor-${number}@example.com`
      await pendingNow(before, email)
      await store.check()
      proxy.after(number, 'cut')
      assert.equal((await store.admit(signup('Ada', email))).is, 'listed now')
      last = proxy.end()
      assert.equal((await store.admit(signup('Ada', email))).is, 'already listed')
    }
    assert.ok((await contactsIn(url)).every(({ state, events }) => state === 'listed' && events === 1))
  })
})

/** Messages of a statement up to its `Sync`, after which it commits. */
const COMMITTING = 5

describe('a statement of which nothing is heard', { timeout: 60_000, concurrency: 3 }, () => {
  test('the signup was stored and its answer never comes: it is listed now, once', async t => {
    const { proxy, url, open } = await stage(t)
    const store = await open(true)
    // So that there is a connection, on which no signup was prepared yet.
    await store.claim('webhook', 1)
    proxy.after(COMMITTING, 'silent')
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    assert.deepEqual(proxy.end(), { side: 'frontend', name: 'Sync' })
    assert.deepEqual(
      (await contactsIn(url)).map(({ events }) => events),
      [1],
    )
  })

  test('when all connections lead nowhere, as after a failover, new ones are made at once', async t => {
    const { proxy, url, open } = await stage(t)
    const store = await open(true)
    // As many as there may be.
    await Promise.all(Array.from({ length: 30 }, () => store.claim('webhook', 1)))
    proxy.strand()
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    assert.equal((await store.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
    assert.equal((await contactsIn(url)).length, 2)
  })

  test('what a straggler leases, when everybody has given it up, is given back', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { proxy, url, open } = await stage(t)
    const [store, other] = [await open(true), await open(false)]
    // A claim looks for what is late first, unless there is nothing left to be looked at.
    assert.deepEqual(await store.claim('webhook', 1), [])
    for (const name of ['ada', 'bob']) await store.admit(signup('Visitor', `${name}@example.com`))
    const arrive = proxy.holdSync()
    // The first try waits before the server; the second one takes one of the two.
    const [taken] = await store.claim('webhook', 1)
    arrive()
    await until(async () => (await rowsIn(url, 'select 1 from delivery where token is not null')).length === 2)
    let back: readonly Delivery[] = []
    await until(async () => {
      back = await other.claim('webhook', 10)
      return back.length > 0
    })
    assert.deepEqual([back.length, back[0]!.attempts, back[0]!.doubt], [1, 0, false])
    assert.equal(await store.settle(taken!, { is: 'delivered' }), true, 'nothing else was given back')
  })

  test('a signup of which everybody was told that it failed is not in doubt later', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { proxy, url, open } = await stage(t)
    const [store, other] = [await open(true, provider), await open(false, provider)]
    // So that there is a connection, on which no signup was prepared yet.
    await store.claim('webhook', 1)
    proxy.after(COMMITTING, 'silent')
    proxy.refuse(true)
    await assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
    assert.deepEqual(
      (await contactsIn(url)).map(({ state }) => state),
      ['pending'],
    )
    proxy.refuse(false)
    let due: readonly Delivery[] = []
    await until(async () => {
      due = await other.claim(provider, 10)
      return due.length > 0
    })
    assert.deepEqual([due[0]!.attempts, due[0]!.doubt], [0, false])
  })
})

// Alone, since it moves the clocks.
for (const [what, wall, monotonic] of [
  ['in sleep', LEASE, 0],
  ['while the clock was set back', LEASE - DAY, LEASE],
] as const) {
  test(`a lease that was lost ${what}: what another attempt came to is not called ours`, async t => {
    const { proxy, url, open } = await stage(t)
    const [store, other] = [await open(true, provider), await open(false, provider)]
    const [date, stopwatch] = [Date.now, performance.now.bind(performance)]
    let leases = 0
    t.mock.method(Date, 'now', () => date() + leases * wall)
    t.mock.method(performance, 'now', () => stopwatch() + leases * monotonic)
    for (let number = 1, last = {} as object | undefined; last !== undefined; number++) {
      const delivery = await pendingNow(store, `visitor-${number}@example.com`)
      await endLeasesAt(url)
      const taken = await only(other, provider)
      assert.equal(await other.settle(taken, { is: 'listed', joined: number % 2 === 0 }), true)
      leases++
      proxy.after(number, 'cut')
      assert.equal(await store.settle(delivery, listed), false)
      last = proxy.end()
    }
  })
}

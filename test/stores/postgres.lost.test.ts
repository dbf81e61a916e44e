/**
 * The connection is lost after every message of every exchange that writes, in both directions, or nothing more is heard of
 * it. Whatever was lost, the answer is true: what is said to be done was done, once.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Delivery, Digest, Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Admission, Store } from '../../src/waitlist/ports/signups.ts'
import { emailsOf, numberOf, only, pendingNow, signup } from '../contracts/store.place.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-database.ts'
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
  /** That it has afterwards. */
  readonly events: number | 'gone'
  /** Only in slow tests: another one is of the same kind, or the same statement with other values. */
  readonly slow?: boolean
}
const exchange = <Begun, Answer>(parts: Exchange<Begun, Answer>) => parts as Exchange<unknown, unknown>

const slowly = (each: Exchange<unknown, unknown>) => ({ ...each, slow: true })

const listed = { is: 'listed', joined: true, providerId: 'p-1' } as const
const soon = { is: 'waiting', wait: 20_000, doubt: true, why: 'timed out' } as const

/** Leased as if for the first time, and it can be ended. */
async function isOurs(store: Store, delivery: Delivery): Promise<void> {
  assert.deepEqual([delivery.attempts, delivery.doubt], [0, false])
  assert.equal(await store.settle(delivery, listed), true)
  assert.equal(await store.settle(await only(store), { is: 'delivered' }), true)
}

/** The end of a hand-over. */
const handedOver = (settlement: Settlement, events: number | 'gone') =>
  exchange<Delivery, boolean>({
    provider,
    events,
    begin: pendingNow,
    cut: (store, _, delivery) => store.settle(delivery, settlement),
    async holds(store, _, delivery) {
      const { email } = delivery.contact
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
    async holds(store, _, delivery) {
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
    holds: (store, answer) => isOurs(store, answer),
    events: 1,
  }),
  'settle a digest': slowly(
    exchange<Digest, boolean>({
      async begin(store, email) {
        await store.admit(signup('Ada', email))
        return (await store.claimDigest('webhook', 10, 1)) as Digest
      },
      cut: (store, _, digest) => store.settleDigest(digest, { is: 'delivered' }, 1),
      async holds(store, _, digest) {
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

describe('a connection that is cut after any message', { concurrency: 3 }, () => {
  for (const [name, { provider, begin, cut, holds, events, slow }] of Object.entries(exchanges)) {
    test(name, { skip: slow && !isSlow && 'it runs in .ci/run' }, async t => {
      const { proxy, url, open } = await stage(t)
      const store = await open(true, provider)
      const cuts: string[] = []
      for (let number = 1; ; number++) {
        const email = `visitor-${number}@example.com`
        const begun = await begin(store, email)
        proxy.after(number, 'cut')
        const answer = await cut(store, email, begun)
        const last = proxy.end()
        // What a lost try has ended is not said to be ended by the next one, but ended it is.
        if (last === undefined) assert.notEqual(answer, false)
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

describe('a statement of which nothing is heard', { concurrency: 3 }, () => {
  test('the signup was stored and its answer never comes: it is listed now, once', async t => {
    const { proxy, url, open } = await stage(t)
    const store = await open(true)
    // So that there is a connection.
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
})

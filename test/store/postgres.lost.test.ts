/**
 * The connection is lost after every message of every exchange that writes, in both directions, or nothing more is heard of
 * it. Whatever was lost, the answer is true: what is said to be done was done, once.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StoreUnavailable } from '../../src/store/database.ts'
import type { Delivery, Settlement } from '../../src/store/outbox.ts'
import type { Admission } from '../../src/store/signups.ts'
import type { Store } from '../../src/store/store.ts'
import { isSlow } from '../harness/environment.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-database.ts'
import { emailsOf, only, pendingNow, signup } from './place.ts'
import { proxied } from './postgres.place.ts'

const provider = 'provider'
const server = await sharedPostgres()

interface Exchange<Begun, Answer> {
  readonly provider?: string
  begin(store: Store, email: string): Promise<Begun>
  /** Made while the connection is cut. */
  cut(store: Store, email: string, begun: Begun): Promise<Answer>
  /** Whether the answer is true, and what comes of it. */
  holds(store: Store, answer: Answer, begun: Begun): Promise<unknown>
  /** That it has afterwards. */
  readonly events: number | 'gone'
  /** Only in slow tests: another one is of the same kind. */
  readonly slow?: boolean
}
const exchange = <Begun, Answer>(parts: Exchange<Begun, Answer>) => parts as Exchange<unknown, unknown>

const listed = { is: 'listed', joined: true, providerId: 'p-1' } as const

/** The end of a hand-over. */
const handedOver = (settlement: Settlement, events: number | 'gone', slow = false) =>
  exchange<Delivery, boolean>({
    provider,
    events,
    slow,
    begin: pendingNow,
    cut: (store, _, delivery) => store.settle(delivery, settlement),
    async holds(store, answer, delivery) {
      assert.equal(answer, true)
      assert.equal(await store.settle(delivery, listed), false, 'the token is used up')
      const joined = await store.claim('webhook', 10)
      assert.deepEqual(emailsOf(joined), events === 1 ? [delivery.contact.email] : [])
      for (const each of joined) await store.settle(each, { is: 'delivered' })
    },
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
    async holds(store, delivery) {
      assert.deepEqual([delivery.attempts, delivery.doubt], [0, false], 'leased as if for the first time')
      assert.equal(await store.settle(delivery, listed), true)
      assert.equal(await store.settle(await only(store), { is: 'delivered' }), true)
    },
    events: 1,
  }),
  'settle a hand-over: listed with its event': handedOver(listed, 1),
  'settle a hand-over: removed': handedOver({ is: 'removed', why: 'no such domain' }, 'gone', true),
}

describe('a connection that is cut after any message', { timeout: 120_000, concurrency: 3 }, () => {
  for (const [name, { provider, begin, cut, holds, events, slow }] of Object.entries(exchanges)) {
    test(name, { skip: slow && !isSlow && 'it runs in .ci/run' }, async t => {
      const { proxy, url, store } = await proxied(server, t, provider)
      const cuts = new Set<string>()
      for (let number = 1; ; number++) {
        const email = `visitor-${number}@example.com`
        const begun = await begin(store, email)
        proxy.after(number, 'cut')
        const answer = await cut(store, email, begun)
        const last = proxy.end()
        await holds(store, answer, begun)
        const kept = (await contactsIn(url)).filter(each => each.email === email)
        assert.deepEqual(
          kept.map(({ events }) => events),
          events === 'gone' ? [] : [events],
        )
        if (last === undefined) break
        cuts.add(`${last.side} ${last.name}`)
      }
      for (const needed of ['frontend Query', 'frontend Sync', 'backend CommandComplete', 'backend ReadyForQuery'])
        assert.ok(cuts.has(needed), `never cut after ${needed}`)
    })
  }

  test('what may not be repeated is not: it is done once, or said to have failed', async t => {
    const { proxy, url, store } = await proxied(server, t)
    await server.run(url, 'create table tally (n bigint)', 'insert into tally values (0)')
    let unknown = 0
    for (let number = 1, before = 0; ; number++) {
      proxy.after(number, 'cut')
      const isDone = await store
        .transaction(tx => tx.run('update tally set n = n + 1'), { repeatable: false })
        .then(
          () => true,
          error => {
            assert.ok(error instanceof StoreUnavailable)
            return false
          },
        )
      const last = proxy.end()
      const [{ n }] = (await rowsIn<{ n: string }>(url, 'select n from tally')) as [{ n: string }]
      const added = Number(n) - before
      before = Number(n)
      if (isDone) assert.equal(added, 1)
      else {
        unknown++
        assert.ok(added <= 1)
      }
      if (last === undefined) break
    }
    assert.ok(unknown > 0)
  })
})

describe('a connection of which nothing is heard', { timeout: 60_000, concurrency: 3 }, () => {
  test('the signup was stored and its answer never comes: it is listed now, once', async t => {
    const { proxy, url, store } = await proxied(server, t)
    let commit = 0
    for (let number = 1; ; number++) {
      proxy.after(number, 'cut')
      await store.admit(signup('Visitor', `visitor-${number}@example.com`))
      const last = proxy.end()
      if (last === undefined) break
      if (last.side === 'frontend' && last.name === 'Query') commit = number
    }
    proxy.after(commit, 'silent')
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    assert.deepEqual(proxy.end(), { side: 'frontend', name: 'Query' })
    const contacts = await contactsIn(url)
    assert.deepEqual(
      contacts.filter(({ email }) => email === 'ada@example.com').map(({ events }) => events),
      [1],
    )
  })

  test('when all connections lead nowhere, as after a failover, new ones are made at once', async t => {
    const { proxy, url, store } = await proxied(server, t)
    // As many as there may be.
    await Promise.all(Array.from({ length: 30 }, () => store.claim('webhook', 1)))
    proxy.strand()
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    assert.equal((await store.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
    assert.equal((await contactsIn(url)).length, 2)
  })
})

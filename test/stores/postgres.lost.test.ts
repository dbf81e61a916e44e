/**
 * The connection is lost after every message of every exchange that writes, in both directions. Whatever was lost, the
 * answer is true: what is said to be done was done, once.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Admission, Beginning, Conclusion, Delivery, Registration, Store } from '../../src/waitlist/ports.ts'
import { pendingNow, signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-contacts.ts'
import { stagesOn } from './postgres.stage.ts'

const provider = 'provider'
const server = await startPostgres()
after(() => server.remove())
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
}
const exchange = <Begun, Answer>(parts: Exchange<Begun, Answer>) => parts as Exchange<unknown, unknown>

/** Leased as if for the first time, and it can be ended. */
async function isOurs(store: Store, registration: Registration | undefined, attempts: number): Promise<void> {
  assert.deepEqual([registration?.attempts, registration?.doubt], [attempts, false])
  assert.equal(await store.conclude(registration!, { is: 'created' }), true)
}
const later = { is: 'pending', wait: 0, doubt: false, why: 'no connection' } as const
async function waiting(store: Store, email: string): Promise<string> {
  const registration = await pendingNow(store, email)
  assert.equal(await store.conclude(registration, later), true)
  return registration.contact.id
}
const concluding = (conclusion: Conclusion, events: number | 'gone') =>
  exchange<Registration, boolean>({
    ...{ provider, events },
    begin: pendingNow,
    cut: (store, _, registration) => store.conclude(registration, conclusion),
    async holds(store, answer, registration) {
      assert.equal(answer, true)
      assert.equal(await store.conclude(registration, { is: 'created' }), false, 'the token is used up')
    },
  })

async function only(store: Store): Promise<Delivery> {
  const [delivery, ...more] = await store.claim('webhook', 10)
  assert.deepEqual(more, [])
  return delivery!
}

const exchanges: Record<string, Exchange<unknown, unknown>> = {
  'admit, listed at once': exchange<void, Admission>({
    begin: async () => {},
    cut: (store, email) => store.admit(signup('Ada', email)),
    holds: async (_, answer) => assert.equal(answer.is, 'listed now'),
    events: 1,
  }),
  'admit, pending': exchange<void, Registration>({
    provider,
    begin: async () => {},
    cut: (store, email) => pendingNow(store, email),
    holds: (store, answer) => isOurs(store, answer, 0),
    events: 1,
  }),
  begin: exchange<string, Beginning>({
    provider,
    begin: waiting,
    cut: (store, _, id) => store.begin(id, provider),
    tookNothing: ({ is }) => is === 'taken',
    holds: (store, answer) => isOurs(store, answer.is === 'ours' ? answer.registration : undefined, 1),
    events: 1,
  }),
  'begin what is due': exchange<string, readonly Registration[]>({
    provider,
    begin: waiting,
    cut: store => store.beginDue(provider, 10, false),
    tookNothing: ({ length }) => length === 0,
    holds: (store, answer) => isOurs(store, answer[0], 1),
    events: 1,
  }),
  'conclude: created': concluding({ is: 'created', providerId: 'p-1' }, 1),
  'conclude: existing': concluding({ is: 'existing' }, 0),
  'conclude: pending': concluding({ ...later, wait: 86_400_000 }, 0),
  'conclude: refused': concluding({ is: 'refused' }, 'gone'),
  claim: exchange<Admission, Delivery>({
    begin: (store, email) => store.admit(signup('Ada', email)),
    cut: only,
    tookNothing: delivery => delivery === undefined,
    async holds(store, delivery) {
      assert.deepEqual([delivery?.attempts, delivery?.doubt], [0, false])
      assert.equal(await store.settle(delivery, { is: 'delivered' }), true)
    },
    events: 1,
  }),
  settle: exchange<Delivery, boolean>({
    async begin(store, email) {
      await store.admit(signup('Ada', email))
      return only(store)
    },
    cut: (store, _, delivery) => store.settle(delivery, { is: 'delivered' }),
    async holds(store, answer, delivery) {
      assert.equal(answer, true)
      assert.equal(await store.settle(delivery, { is: 'delivered' }), false, 'the token is used up')
      assert.deepEqual(await store.claim('webhook', 10), [])
    },
    events: 1,
  }),
}

const MESSAGES = ['frontend Execute', 'frontend Sync', 'backend CommandComplete', 'backend ReadyForQuery']

describe('a connection that is cut after any message', { timeout: 120_000, concurrency: 3 }, () => {
  for (const [name, { provider, begin, cut, tookNothing, holds, events }] of Object.entries(exchanges)) {
    test(name, async t => {
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

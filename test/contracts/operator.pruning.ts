import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Operator } from '../../src/stores/operator/operator.ts'
import type { Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { type MakeDesk, openDesk } from './operator.desk.ts'
import { DAY, handClock, opened, pendingNow } from './store.place.ts'

const delivered = { is: 'delivered' } as const
const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const

async function join(store: Store, ...who: readonly string[]): Promise<void> {
  const handOvers = await Promise.all(who.map(each => pendingNow(store, `${each}@example.com`)))
  await Promise.all(handOvers.map(each => store.settle(each, { is: 'listed', joined: true })))
}

async function end(store: Store, destination: string, most: number, settlement: Settlement): Promise<void> {
  for (const each of await store.claim(destination, most)) await store.settle(each, settlement)
}

export function pruningContract(name: string, make: MakeDesk): void {
  describe(`pruning ${name}`, { timeout: 180_000 }, () => {
    /** Six deliveries of three contacts: two delivered and one abandoned ten days ago, one delivered today, two waiting. */
    async function history(t: TestContext) {
      const clock = handClock()
      const desk = await openDesk(make, t, { clock: clock.read })
      const { store } = desk
      await join(store, 'ada', 'bob', 'cyd')
      await end(store, 'webhook', 2, delivered)
      await end(store, 'webhook', 1, abandoned)
      // Abandoned, and not at its end.
      await store.settle(await pendingNow(store, 'dot@example.com'), abandoned)
      clock.pass(10 * DAY)
      await end(store, 'crm', 1, delivered)
      return { ...desk, clock }
    }
    const left = async (operator: Operator) =>
      (await operator.deliveries({ limit: 50 })).map(({ destination, state }) => `${destination}: ${state}`).sort()
    const young = ['crm: delivered', 'crm: waiting', 'crm: waiting', 'provider: abandoned']

    test('what ended before then goes; what waits, ended later, or hands over somebody who is pending stays', async t => {
      const { operator, sql, clock } = await history(t)
      const prune = (days: number) => operator.prune(new Date(clock.read() - days * DAY))
      assert.deepEqual(await prune(11), { deleted: 0, abandoned: 0 })
      assert.equal((await left(operator)).length, 7)
      assert.deepEqual(await prune(9), { deleted: 3, abandoned: 1 })
      assert.deepEqual(await left(operator), young)
      assert.deepEqual(await prune(9), { deleted: 0, abandoned: 0 })
      assert.equal((await sql('select 1 from contact')).length, 4)
    })

    test('a service does the same, some deliveries at a time, but for what was abandoned; it can count them first', async t => {
      const { operator, store } = await history(t)
      const none = { deleted: 0, abandoned: 0, last: null }
      assert.deepEqual(await store.prune(11 * DAY, 0, 50), { ...none, looked: 7 })
      assert.deepEqual(await store.prune(9 * DAY, 0, 50, true), { ...none, looked: 7, deleted: 2 })
      let [deleted, steps] = [0, 0]
      for (let after: number | null = 0; after !== null; steps++) {
        const step: Awaited<ReturnType<Store['prune']>> = await store.prune(9 * DAY, after, 2)
        deleted += step.deleted
        assert.ok(step.last === null || step.last > after)
        after = step.last
      }
      assert.deepEqual([deleted, steps], [2, 4])
      assert.deepEqual(await left(operator), [...young, 'webhook: abandoned'])
    })

    test('whose deliveries were pruned is told once and no more, and after a restart too', async t => {
      const { operator, place, store, clock } = await history(t)
      await operator.prune(new Date(clock.read()))
      await store.close()
      const options = { provider: 'provider', destinations: ['webhook', 'crm'], clock: clock.read }
      const next = await opened(place, t, options)
      assert.deepEqual(await next.claim('webhook', 50), [])
      assert.equal((await next.claim('crm', 50)).length, 2)
      assert.deepEqual(await next.claim('provider', 50), [])
      assert.deepEqual(await operator.replay({ abandoned: true }), { replayed: 1, underWay: [], unknown: [] })
    })

    test('very many go in several steps, and signups meanwhile', async t => {
      const { store, operator } = await openDesk(make, t)
      await join(store, ...Array.from({ length: 800 }, (_, i) => `v${i}`))
      const claimed = await store.claim('webhook', 800)
      await Promise.all(claimed.map(each => store.settle(each, delivered)))
      const seen: (readonly [number, number])[] = []
      const [pruned] = await Promise.all([
        operator.prune(new Date(Date.now() + DAY), (...all) => void seen.push(all)),
        join(store, ...Array.from({ length: 200 }, (_, i) => `later${i}`)),
      ])
      assert.equal(pruned.deleted, 800)
      assert.ok(seen.length > 1, 'in several steps')
      assert.ok(seen.every(([, total]) => total >= 1_600))
      const counted = await operator.backlog()
      assert.deepEqual([counted.waiting.webhook, counted.waiting.crm], [200, 1_000])
    })
  })
}

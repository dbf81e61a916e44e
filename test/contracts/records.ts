import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Records } from '../../src/stores/records.ts'
import { CannotOpen, type Store } from '../../src/waitlist/ports.ts'
import { pendingNow, signup } from './store.place.ts'

/** An open store that has a provider and tells two destinations, `webhook` and `crm`, and what an operator sees of it. */
export interface Desk {
  readonly store: Store
  readonly records: Records
}

const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const

/** Three contacts are listed, so there are six deliveries; a fourth is pending. */
async function busy({ store }: Desk): Promise<void> {
  for (const who of ['ada', 'bob', 'cyd']) {
    await store.conclude(await pendingNow(store, `${who}@example.com`), { is: 'created', providerId: `id-${who}` })
  }
  await pendingNow(store, 'dot@example.com')
}

export function recordsContract(
  name: string,
  open: (t: TestContext) => Promise<Desk>,
  nowhere: (t: TestContext) => Promise<Records>,
): void {
  describe(`what an operator asks, of ${name}`, { timeout: 60_000 }, () => {
    test('all contacts in the order in which they joined, of one moment', async t => {
      const desk = await open(t)
      await busy(desk)
      const contacts = await desk.records.contacts()
      await desk.store.admit(signup('Eve', 'eve@example.com'))
      const read = await Array.fromAsync(contacts)
      assert.deepEqual(
        read.slice(0, 4).map(({ email, state }) => [email, state]),
        [
          ['ada@example.com', 'listed'],
          ['bob@example.com', 'listed'],
          ['cyd@example.com', 'listed'],
          ['dot@example.com', 'pending'],
        ],
      )
      assert.ok(read.every(({ createdAt }) => Math.abs(Date.now() - createdAt.getTime()) < 60_000))
      for await (const { email } of await desk.records.contacts()) {
        assert.equal(email, 'ada@example.com')
        break
      }
    })

    test('deliveries: the newest first, by state and destination, and one with its event', async t => {
      const { store, records } = await open(t)
      await busy({ store, records })
      const [claimed] = await store.claim('webhook', 1)
      await store.settle(claimed!, abandoned)
      const all = await records.deliveries({ limit: 50 })
      assert.deepEqual(
        all.map(({ number }) => number),
        all.map(({ number }) => number).toSorted((a, b) => b - a),
      )
      assert.equal(all.length, 6)
      assert.equal((await records.deliveries({ limit: 2 })).length, 2)
      assert.equal((await records.deliveries({ destination: 'crm', limit: 50 })).length, 3)
      const [given] = await records.deliveries({ state: 'abandoned', destination: 'webhook', limit: 50 })
      assert.deepEqual([given?.number, given?.why, given?.attempts], [claimed!.number, 'HTTP 404', 1])
      assert.ok(given?.settledAt instanceof Date)
      assert.deepEqual(await records.delivery(claimed!.number), { record: given, event: claimed!.event })
      assert.equal(await records.delivery(999_999), undefined)
    })

    test('a replay renews what it can, and tells what is under way and what does not exist', async t => {
      const { store, records } = await open(t)
      await busy({ store, records })
      const [first, second] = await store.claim('webhook', 2)
      await store.settle(first!, abandoned)
      const numbers = [first!.number, first!.number, second!.number, 999_999]
      const replay = await records.replay({ numbers })
      assert.deepEqual(replay, { replayed: 1, underWay: [second!.number], unknown: [999_999] })
      const again = await store.claim('webhook', 5)
      assert.ok(again.some(({ number, attempts, doubt }) => number === first!.number && attempts === 0 && !doubt))

      for (const delivery of await store.claim('crm', 3)) await store.settle(delivery, abandoned)
      assert.equal((await records.replay({ abandoned: true, destination: 'webhook' })).replayed, 0)
      assert.equal((await records.replay({ abandoned: true })).replayed, 3)
      assert.equal((await records.replay({ abandoned: true })).replayed, 0)
    })

    test('the backlog counts what has not come to its end, and a look says what is there', async t => {
      const { store, records } = await open(t)
      assert.deepEqual(await records.backlog(), { pending: 0, waiting: {}, abandoned: 0 })
      await busy({ store, records })
      await store.settle((await store.claim('webhook', 1))[0]!, abandoned)
      await store.settle((await store.claim('crm', 1))[0]!, { is: 'delivered' })
      assert.deepEqual(await records.backlog(), { pending: 1, waiting: { crm: 2, webhook: 2 }, abandoned: 1 })
      assert.match(await records.look(), /./)
    })

    test('where there is no list it says so', async t => {
      const records = await nowhere(t)
      await assert.rejects(records.contacts(), CannotOpen)
      await assert.rejects(records.deliveries({ limit: 1 }), CannotOpen)
      await assert.rejects(records.replay({ numbers: [1] }), CannotOpen)
      assert.match(await records.look(), /made at the first start/)
    })
  })
}

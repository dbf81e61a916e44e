import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanUp } from '../../src/app/cleanup.ts'
import type { Store } from '../../src/store/store.ts'
import { recordingLog } from '../harness/log.ts'
import { DAY, forEachEngine, handClock, only, pendingNow, signup } from '../store/place.ts'

/** Nobody is held, but proofs are kept. */
const holds = { above: null, suspicious: false }

/** One round. */
async function clean(store: Store, provider: string | null = null): Promise<void> {
  const stop = new AbortController()
  let left = provider === null ? 4 : 5
  const transaction: Store['transaction'] = async (...step) => {
    const result = await store.transaction(...step)
    if (--left === 0) stop.abort()
    return result
  }
  await cleanUp({ transaction }, provider, recordingLog().log, stop.signal)
}

forEachEngine('cleaning up', place => {
  test('deletes expired proofs, who did not confirm within a week, and deliveries that arrived 90 days ago', async t => {
    const [here, clock] = [await place(t), handClock()]
    const before = await here.open({ destinations: ['webhook'], holds, clock: clock.read })
    const proof = { nonce: 'n', expires: new Date(clock.read() + 7 * DAY) }
    await before.admit({ ...signup('Ada', 'ada@example.com'), proof })
    await before.settle(await only(before), { is: 'delivered' })
    await before.close()
    const store = await here.open({ confirmation: 'mail', clock: clock.read })
    await store.admit(signup('Bob', 'bob@example.com'))
    await store.settle(await only(store, 'mail'), { is: 'delivered' })
    const kept = async () => {
      await clean(store)
      const [counts] = await here.sql(
        'select (select count(*) from contact) as contacts, (select count(*) from proof) as proofs,' +
          " (select count(*) from delivery where destination = 'webhook') as deliveries",
      )
      return Object.values(counts!)
    }
    assert.deepEqual(await kept(), [2, 1, 1])
    clock.pass(7 * DAY + 120_000)
    assert.deepEqual(await kept(), [1, 0, 1])
    clock.pass(83 * DAY)
    assert.deepEqual(await kept(), [1, 0, 0])
  })

  test('moves what an instance that was restarted later left for the provider before', async t => {
    const store = await (await place(t)).open({ provider: 'a' })
    await store.settle(await pendingNow(store), { is: 'retry', wait: 0, doubt: false, why: 'HTTP 503', counts: true })
    await clean(store, 'b')
    assert.equal((await only(store, 'b')).contact.email, 'ada@example.com')
  })
})

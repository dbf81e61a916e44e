import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { SqliteStoreOptions } from '../../src/stores/sqlite/store.ts'
import type { Delivery, Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { handClock, pendingNow, signup } from '../contracts/store.place.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { hasFailed, openStore } from './sqlite.stage.ts'

const provider = 'provider'
const clock = handClock().read
const listed: Settlement = { is: 'listed', joined: true }
const removed: Settlement = { is: 'removed', why: 'no such domain' }
const waiting: Settlement = { is: 'waiting', wait: 5_000, doubt: true, why: 'HTTP 503' }

interface UnderWay {
  readonly path: string
  readonly handOvers: Delivery[]
  readonly deliveries: Delivery[]
  /** Opens the file again, on a disk with less room. */
  again(options: Partial<SqliteStoreOptions>): Promise<Store>
}

/** A file in which attempts are under way, and as many contacts and deliveries are still to be attempted. */
async function underWay(t: TestContext, count: number): Promise<UnderWay> {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const again = async (rest: Partial<SqliteStoreOptions>) => {
    const { store } = await openStore(t, { path, provider, destinations: ['webhook'], clock, ...rest })
    return store
  }
  const store = await again({})
  const all = await Promise.all(
    Array.from({ length: 4 * count }, (_, i) => pendingNow(store, `visitor-${i}@example.com`)),
  )
  const settle = (from: number, settlement: Settlement) =>
    Promise.all(all.slice(from * count, (from + 1) * count).map(each => store.settle(each, settlement)))
  await settle(0, listed)
  await settle(1, listed)
  await settle(2, { is: 'waiting', wait: 0, doubt: false, why: 'no connection' })
  const deliveries = [...(await store.claim('webhook', count))]
  await store.close()
  return { path, handOvers: all.slice(3 * count), deliveries, again }
}

describe('on a disk without room', { concurrency: true, timeout: 60_000 }, () => {
  test('with too little free space nothing is claimed, and everything that is under way can be settled', async t => {
    const { path, handOvers, deliveries, again } = await underWay(t, 4)
    const store = await again({ minimumFree: Number.MAX_SAFE_INTEGER })
    await assert.rejects(store.admit(signup('Late', 'late@example.com')), StoreUnavailable)
    await assert.rejects(store.claim(provider, 10), StoreUnavailable)
    await assert.rejects(store.claim(provider, 1, 9), StoreUnavailable)
    await assert.rejects(store.claim('webhook', 10), StoreUnavailable)

    const ends: Settlement[] = [listed, { is: 'listed', joined: false }, removed, waiting]
    for (const [i, settlement] of ends.entries()) {
      assert.equal(await store.settle(handOvers[i]!, settlement), true)
    }
    const settlements: Settlement[] = [{ is: 'delivered' }, { is: 'abandoned', why: 'HTTP 404' }, waiting]
    for (const [i, settlement] of settlements.entries()) {
      assert.equal(await store.settle(deliveries[i]!, settlement), true)
    }
    assert.equal(contactsIn(path).length, 15)
    assert.equal(await hasFailed(store), false)
  })
})

/** A connection that is not cut, and of which nothing is heard: what was done all the same is found, or given back. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Delivery } from '../../src/waitlist/ports/outbox.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-contacts.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { stagesOn } from './postgres.stage.ts'

const provider = 'provider'
/** Messages of a statement up to its `Sync`, after which it commits. */
const COMMITTING = 5

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())
const stage = stagesOn(server)

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
    await until(async () => (await leased(url)) === 2)
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

async function leased(url: string): Promise<number> {
  return (await rowsIn(url, 'select 1 from delivery where token is not null')).length
}

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { renameSync, statSync, unlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Delivery, Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { handClock, pendingNow, signup } from '../contracts/store.place.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { hasFailed, openStore } from './sqlite.stage.ts'

/** Milliseconds after which the next batch, or the next check, looks at the files and at the free space again. */
const LOOK = 260

let visitors = 0
const somebody = () => signup('Visitor', `visitor-${++visitors}@example.com`)

/** Admits new addresses until one is refused; says which were acknowledged, and why the last was not. */
async function admitUntilRefused(store: Store, most: number): Promise<{ acknowledged: string[]; reason: unknown }> {
  const acknowledged: string[] = []
  for (let i = 0; i < most; i++) {
    const { name, email } = somebody()
    try {
      assert.equal((await store.admit(signup(name, email))).is, 'listed now')
    } catch (reason) {
      return { acknowledged, reason }
    }
    acknowledged.push(email)
  }
  throw new Error(`none of ${most} signups was refused`)
}

async function refusesEverything(store: Store): Promise<void> {
  const tries = Array.from({ length: 50 }, () => store.admit(somebody()))
  for (const each of await Promise.allSettled(tries)) {
    assert.equal(each.status, 'rejected')
    assert.ok(each.reason instanceof StoreUnavailable)
  }
  await assert.rejects(store.check(), StoreUnavailable)
}

describe('what passes by itself', { concurrency: true }, () => {
  test('a full disk refuses signups, keeps what was acknowledged, and works again when there is room', async t => {
    const { store, path } = await openStore(t, { maxPages: 28 })
    const { acknowledged, reason } = await admitUntilRefused(store, 5_000)
    assert.ok(reason instanceof StoreUnavailable)
    assert.match(reason.message, /full/)
    assert.deepEqual(
      contactsIn(path).map(({ email, events }) => [email, events]),
      acknowledged.map(email => [email, 1]),
      'every acknowledged contact is stored with its event, nothing else is',
    )
    // A whole batch that does not fit is refused as one; who is listed already is still told so.
    const crowd = await Promise.allSettled(Array.from({ length: 300 }, () => store.admit(somebody())))
    assert.ok(crowd.every(({ status }) => status === 'rejected'))
    assert.deepEqual(await store.admit(signup('Visitor', acknowledged[0]!)), { is: 'already listed' })

    withDatabase(path, database => database.exec('delete from contact'))
    assert.equal((await store.admit(somebody())).is, 'listed now')
    assert.equal(await hasFailed(store), false)
  })

  test('too little free space refuses signups and the check, before anything is written', async t => {
    const { store, path } = await openStore(t, { minimumFree: Number.MAX_SAFE_INTEGER })
    await assert.rejects(store.admit(somebody()), (error: Error) => {
      assert.ok(error instanceof StoreUnavailable)
      assert.match(error.message, /bytes are free/)
      return true
    })
    await assert.rejects(store.check(), StoreUnavailable)
    assert.equal(contactsIn(path).length, 0)
    assert.equal(await hasFailed(store), false)
  })

  test('a write lock that is let go in time is only waited for', async t => {
    const { store, path } = await openStore(t)
    const other = new DatabaseSync(path)
    t.after(() => other.close())
    other.exec('begin immediate')
    const answer = store.admit(somebody())
    await wait(300)
    other.exec('rollback')
    assert.equal((await answer).is, 'listed now')
  })
})

describe('what ends the store', { concurrency: true }, () => {
  const listed = { is: 'listed', joined: true } as const
  for (const [what, disappear, ask] of [
    ['deleted, a signup', path => unlinkSync(path), store => store.admit(somebody())],
    ['moved away, a claim', path => renameSync(path, `${path}.moved`), store => store.claim('provider', 1)],
    [
      'replaced by another one, a settlement',
      path => {
        withDatabase(`${path}.other`, database => database.exec('create table other (number integer primary key)'))
        renameSync(`${path}.other`, path)
      },
      (store, delivery) => store.settle(delivery, listed),
    ],
  ] satisfies [string, (path: string) => void, (store: Store, delivery: Delivery) => Promise<unknown>][]) {
    test(`when the file is ${what} notices it within 250 ms, and nothing more is acknowledged`, async t => {
      const { store, path } = await openStore(t, { provider: 'provider' })
      const delivery = await pendingNow(store)
      disappear(path)
      await wait(LOOK)
      await assert.rejects(ask(store, delivery), StoreUnavailable)
      assert.match((await store.failure).message, /was moved or deleted/)
      await refusesEverything(store)
    })
  }

  test('the health check alone notices within 250 ms that the file is gone', async t => {
    const { store, path } = await openStore(t)
    unlinkSync(path)
    await wait(LOOK)
    await assert.rejects(store.check(), StoreUnavailable)
    assert.match((await store.failure).message, /was moved or deleted/)
  })

  test('pages that turn to garbage under the running store end it; nothing is acknowledged after that', async t => {
    const { store, path } = await openStore(t)
    for (let crowd = 0; crowd < 3; crowd++) {
      await Promise.all(Array.from({ length: 6_000 }, () => store.admit(somebody())))
    }
    const checkpointed = withDatabase(path, database => database.prepare('pragma wal_checkpoint(truncate)').get())
    assert.equal(checkpointed?.busy, 0)
    const { size } = statSync(path)
    assert.ok(size > 3_000_000, 'more than the cache of the connection holds')
    // By another process: closing a file frees all locks that its own process has on it (fcntl).
    const garble =
      'const fs = require("node:fs"); const f = fs.openSync(process.argv[1], "r+");' +
      'fs.writeSync(f, Buffer.alloc(process.argv[2] - 4096, 0xa5), 0, undefined, 4096); fs.closeSync(f)'
    assert.equal(spawnSync(process.execPath, ['-e', garble, path, String(size)]).status, 0)

    const { reason } = await admitUntilRefused(store, 2_000)
    assert.ok(reason instanceof StoreUnavailable)
    assert.match((await store.failure).message, /malformed|corrupt/)
    await refusesEverything(store)
  })
})

describe('with too little free space', () => {
  test('nothing is claimed, and everything that is under way can be settled', async t => {
    const clock = handClock().read
    const parts = { provider: 'provider', destinations: ['webhook'], clock }
    const { store: before, path } = await openStore(t, parts)
    const listed: Settlement = { is: 'listed', joined: true }
    const waiting: Settlement = { is: 'waiting', wait: 5_000, doubt: true, why: 'HTTP 503' }
    const all = await Promise.all(Array.from({ length: 7 }, (_, i) => pendingNow(before, `visitor-${i}@example.com`)))
    for (const each of all.slice(0, 3)) await before.settle(each, listed)
    const deliveries = await before.claim('webhook', 3)
    await before.close()

    const { store } = await openStore(t, { ...parts, path, minimumFree: Number.MAX_SAFE_INTEGER })
    await assert.rejects(store.admit(signup('Late', 'late@example.com')), StoreUnavailable)
    for (const claimed of [store.claim('provider', 10), store.claim('provider', 1, 9), store.claim('webhook', 10)]) {
      await assert.rejects(claimed, StoreUnavailable)
    }
    const removed: Settlement = { is: 'removed', why: 'no such domain' }
    for (const [i, settlement] of [listed, { is: 'listed', joined: false } as const, removed, waiting].entries()) {
      assert.equal(await store.settle(all[3 + i]!, settlement), true)
    }
    const ends: Settlement[] = [{ is: 'delivered' }, { is: 'abandoned', why: 'HTTP 404' }, waiting]
    for (const [i, settlement] of ends.entries()) assert.equal(await store.settle(deliveries[i]!, settlement), true)
    assert.equal(contactsIn(path).length, 6)
    assert.equal(await hasFailed(store), false)
  })

  test('a service has the secrets that it starts with', async t => {
    const { store: before, path } = await openStore(t)
    const known = await before.secret('links')
    await before.close()
    const { store } = await openStore(t, { path, minimumFree: Number.MAX_SAFE_INTEGER })
    assert.equal(await store.secret('links'), known)
    assert.match(await store.secret('challenge'), /^[0-9a-f]{64}$/)
  })
})

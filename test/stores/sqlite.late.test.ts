import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Delivery } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'

const provider = 'loops'
const lateBounds = { batch: 256, queue: 1_000, timeout: 200 }

/** Opens a store that soon loses its timeout, and a way to keep it from committing while something is asked of it. */
async function late(t: TestContext, options: { provider?: string; destinations?: string[] }) {
  // Registered before the folder's own removal, since hooks run in that order.
  let close = async () => {}
  t.after(() => close())
  const path = join(temporaryFolder(t), 'waitlist.db')
  const more = { minimumFree: 0, bounds: lateBounds, ...options }
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', ...more })
  close = store.close
  const whileLocked = async (ask: (store: Store) => Promise<unknown>): Promise<void> => {
    const other = new DatabaseSync(path)
    other.exec('begin immediate')
    await assert.rejects(ask(store), StoreUnavailable)
    other.close() // ends its transaction
  }
  return { store, whileLocked }
}

test('a claim that is committed too late is given back: nobody was told, so nothing is in doubt', async t => {
  const { store, whileLocked } = await late(t, { destinations: ['webhook'] })
  await store.admit(signup('Ada', 'ada@example.com'))
  await whileLocked(({ claim }) => claim('webhook', 10))
  let claimed: readonly Delivery[] = []
  await until(async () => {
    claimed = await store.claim('webhook', 10).catch(() => [])
    return claimed.length > 0
  })
  assert.deepEqual([claimed.length, claimed[0]!.attempts, claimed[0]!.doubt], [1, 0, false])
})

test('a signup that is committed too late is not in doubt either: the provider was not asked', async t => {
  const { store, whileLocked } = await late(t, { provider })
  await whileLocked(({ admit }) => admit(signup('Ada', 'ada@example.com')))
  const due = await claimed(store)
  assert.deepEqual([due.contact.email, due.attempts, due.doubt], ['ada@example.com', 0, false])
})

/** Claims the only hand-over as soon as somebody can. */
async function claimed(store: Store, contact?: number): Promise<Delivery> {
  let claimed: readonly Delivery[] = []
  await until(async () => {
    claimed = await store.claim(provider, 10, contact).catch(() => [])
    return claimed.length > 0
  })
  assert.equal(claimed.length, 1)
  return claimed[0]!
}

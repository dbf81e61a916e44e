import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { type Delivery, type Registration, type Store, StoreUnavailable } from '../../src/waitlist/ports.ts'
import { signup } from '../contracts/store.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'

const provider = 'loops'
const lateBounds = { batch: 256, queue: 1_000, patience: 200 }

/** Opens a store that soon loses its patience, and a way to keep it from committing while something is asked of it. */
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
  let due: readonly Registration[] = []
  await until(async () => {
    due = await store.beginDue(provider, 10, false).catch(() => [])
    return due.length > 0
  })
  assert.deepEqual([due[0]!.contact.email, due[0]!.attempts, due[0]!.doubt], ['ada@example.com', 0, false])
})

test('the same is true of an attempt for somebody pending, one by one or as they are due', async t => {
  const { store, whileLocked } = await late(t, { provider })
  const admission = await store.admit(signup('Ada', 'ada@example.com'))
  assert.ok(admission.is === 'pending now')
  const { registration } = admission
  await store.conclude(registration, { is: 'pending', wait: 0, doubt: false, why: 'busy', uncalled: true })
  for (const ask of [
    (from: Store) => from.begin(registration.contact.id, provider),
    (from: Store) => from.beginDue(provider, 10, false),
  ]) {
    await whileLocked(ask)
    const begun: Registration[] = []
    await until(async () => {
      const beginning = await store.begin(registration.contact.id, provider).catch(() => null)
      if (beginning?.is === 'ours') begun.push(beginning.registration)
      return begun.length > 0
    })
    const [{ attempts, doubt }] = begun as [Registration]
    assert.deepEqual([attempts, doubt], [0, false])
    const again = { is: 'pending', wait: 0, doubt: false, why: 'busy', uncalled: true } as const
    await store.conclude(begun[0]!, again)
  }
})

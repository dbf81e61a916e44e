/**
 * The server goes away and comes back: nothing that was acknowledged is lost, and the store is not opened anew. What was
 * answered is synced to disk, also where the server is told not to: its own habit is to write the log ten seconds later.
 */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { idOf, pendingNow, signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { BOUND, openedOn, session } from './postgres.stage.ts'

const lazy = { synchronous_commit: 'off', wal_writer_delay: '10s', wal_writer_flush_after: '1GB', autovacuum: 'off' }
const server = await startPostgres({ settings: lazy })
after(() => server.remove())

const opened = openedOn(server)

/** Signs up one after the other until it is told to stop; gives the addresses that were acknowledged. */
function visitors(t: TestContext, store: Store) {
  const acknowledged: string[] = []
  let refused = 0
  let going = true
  t.after(() => {
    going = false
  })
  const lines = Array.from({ length: 4 }, async (_, line) => {
    for (let i = 0; going; i++) {
      const email = `visitor-${line}-${i}@example.com`
      await store.admit(signup('Visitor', email)).then(
        () => void acknowledged.push(email),
        error => {
          assert.ok(error instanceof StoreUnavailable, `${error}`)
          refused++
          return wait(10)
        },
      )
    }
  })
  return {
    refused: () => refused,
    async stop() {
      going = false
      await Promise.all(lines)
      return acknowledged
    },
  }
}

async function eachOnce(url: string, acknowledged: readonly string[]): Promise<void> {
  const contacts = await contactsIn(url)
  const stored = new Set(contacts.map(({ email }) => email))
  assert.equal(stored.size, contacts.length)
  assert.deepEqual(
    acknowledged.filter(email => !stored.has(email)),
    [],
  )
  assert.ok(contacts.every(({ events, deliveries }) => events === 1 && deliveries === 1))
}

async function crash(): Promise<void> {
  await server.stop('immediate')
  await server.start()
}

test('signups and settlements survive a crash right after their answer; at full length, leases and every kind of end', async t => {
  const url = await server.database()
  const parts = { url, eventName: 'waitlist.joined', destinations: ['webhook'], log: recordingLog().log }
  const stores = [await postgresStore(parts), await postgresStore({ ...parts, provider: 'provider' })] as const
  const [listing, asking] = stores
  t.after(() => Promise.all(stores.map(store => store.close())))
  const seen = async () => (await contactsIn(url)).map(({ email, state, events }) => [email, state, events])

  await server.run(url, 'create table lost as select 1')
  await listing.admit(signup('Ada', 'ada@example.com'))
  await crash()
  assert.deepEqual(await seen(), [['ada@example.com', 'listed', 1]])

  const handOver = await pendingNow(asking, 'bob@example.com')
  await crash()
  assert.deepEqual((await seen())[1], ['bob@example.com', 'pending', 0])

  assert.equal(await asking.settle(handOver, { is: 'listed', joined: true }), true)
  await crash()
  assert.deepEqual((await seen())[1], ['bob@example.com', 'listed', 1])

  if (isSlow) {
    const [delivery] = await listing.claim('webhook', 1)
    await crash()
    assert.equal((await rowsIn(url, 'select 1 from delivery where token is not null')).length, 1)

    assert.equal(await listing.settle(delivery!, { is: 'delivered' }), true)
    await crash()
    assert.equal((await rowsIn(url, "select 1 from delivery where state = 'delivered'")).length, 1)

    const cyd = await pendingNow(asking, 'cyd@example.com')
    assert.equal(await asking.settle(cyd, { is: 'removed', why: 'no such domain' }), true)
    await crash()
    assert.equal((await seen()).length, 2)

    const dot = await pendingNow(asking, 'dot@example.com')
    assert.equal(await asking.settle(dot, { is: 'waiting', wait: 0, doubt: true, why: 'timed out' }), true)
    await crash()
    assert.equal((await rowsIn(url, "select 1 from delivery where doubt and why = 'timed out'")).length, 1)

    assert.equal((await listing.admit(signup('Dot', 'DOT@example.com'))).is, 'listed now')
    await crash()
    assert.deepEqual((await seen())[2], ['dot@example.com', 'listed', 1])
  }

  // That this server does forget is what makes the rest say something.
  await server.run(url, "update contact set name = 'Forgotten'")
  await crash()
  assert.ok((await contactsIn(url)).every(({ name }) => name !== 'Forgotten'))
})

test('its sessions are ended again and again: nobody is refused, and nothing is stored twice', async t => {
  const { store, url } = await opened(t)
  const operator = await session(t, url)
  const crowd = visitors(t, store)
  for (let i = 0; i < 20; i++) {
    await wait(25)
    await operator.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
      'waitlist',
    ])
  }
  const acknowledged = await crowd.stop()
  assert.ok(acknowledged.length > 0)
  assert.equal(crowd.refused(), 0)
  await eachOnce(url, acknowledged)
})

const isAble = (store: Store): Promise<boolean> =>
  store.check().then(
    () => true,
    () => false,
  )

for (const mode of ['fast', 'immediate'] as const) {
  test(`a ${mode} restart: what was acknowledged is there, and the same store goes on`, async t => {
    const { store, url } = await opened(t)
    const crowd = visitors(t, store)
    await wait(100)
    await server.stop(mode)
    await server.start()
    await until(() => isAble(store))
    assert.equal((await store.admit(signup('Late', 'late@example.com'))).is, 'listed now')
    await eachOnce(url, [...(await crowd.stop()), 'late@example.com'])
  })
}

test('a server that hangs is unavailable within bounds, and used again when it goes on', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const { store, url } = await opened(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  server.pause()
  try {
    const since = performance.now()
    const calls = [
      store.admit(signup('Bob', 'bob@example.com')),
      ...Array.from({ length: 30 }, () => store.claim('webhook', 10)),
    ]
    await Promise.all(calls.map(call => assert.rejects(call, StoreUnavailable)))
    await assert.rejects(store.check(), StoreUnavailable)
    assert.ok(performance.now() - since < BOUND)
  } finally {
    server.goOn()
  }
  await until(() => isAble(store))
  const answer = await store.admit(signup('Bob', 'bob@example.com'))
  const [bob] = (await contactsIn(url)).filter(({ email }) => email === 'bob@example.com')
  // Told once that it failed, he may be on the list all the same; twice he is not.
  assert.ok(answer.is === 'already listed' || idOf(answer) === bob?.id)
  await eachOnce(url, ['ada@example.com', 'bob@example.com'])
})

test('a check waits for the disk, also where the server is told not to', async t => {
  const { store, url } = await opened(t)
  const text = 'select pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn() as unsynced'
  const unsynced = async () => Number((await rowsIn<{ unsynced: string }>(url, text))[0]!.unsynced)
  await server.run(url, 'create table lost as select 1')
  assert.ok((await unsynced()) > 0, 'this server does write later')
  await store.check()
  assert.equal(await unsynced(), 0)
})

test('while a synchronous standby is away, nothing is acknowledged and checks fail; then all is as it was', async t => {
  const { store, url } = await opened(t)
  const ada = signup('Ada', 'ada@example.com')
  await store.check()
  await server.run(url, "alter system set synchronous_standby_names = 'nobody'", 'select pg_reload_conf()')
  await until(async () => {
    const [row] = await rowsIn<{ synchronous_standby_names: string }>(url, 'show synchronous_standby_names')
    return row!.synchronous_standby_names !== ''
  })
  await assert.rejects(store.admit(ada), StoreUnavailable)
  await assert.rejects(store.check(), StoreUnavailable)
  await server.run(url, 'alter system reset synchronous_standby_names', 'select pg_reload_conf()')
  await until(() => isAble(store))
  // Who was refused may be there after all, but once.
  assert.equal((await store.admit(ada)).is, 'already listed')
  assert.deepEqual(
    (await contactsIn(url)).map(({ events }) => events),
    [1],
  )
})

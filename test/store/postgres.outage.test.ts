/**
 * The server goes away, comes back, or does not do what it should: what passes is waited for, for a short while; what does not
 * ends in `StoreUnavailable`, and nothing that was acknowledged is lost. What was answered is synced, even though this server
 * is told to sync ten seconds later.
 */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { inspect } from 'node:util'
import { StoreUnavailable } from '../../src/store/database.ts'
import { postgresDatabase, postgresForCommand } from '../../src/store/postgres/open.ts'
import { openStore, type Store } from '../../src/store/store.ts'
import { isSlow, seedOf } from '../harness/environment.ts'
import { startFaultProxy } from '../harness/fault-proxy.ts'
import { recordingLog } from '../harness/log.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { pendingNow, signup } from './place.ts'

const lazy = { synchronous_commit: 'off', wal_writer_delay: '10s', wal_writer_flush_after: '1GB', autovacuum: 'off' }
const server = await startPostgres({ settings: lazy })
after(() => server.remove())

/** A store whose events go to a webhook, on an empty database that is reached through a proxy. */
async function opened(t: TestContext, provider: string | null = null) {
  const proxy = await startFaultProxy(server.port, seedOf(t))
  t.after(proxy.close)
  const url = await server.database()
  const through = url.replace(`:${server.port}/`, `:${proxy.port}/`)
  const store = await storeAt({ kind: 'postgres', url: through }, { provider, destinations: ['webhook'] })
  t.after(store.close)
  return { store, url, through, proxy }
}

async function assertEachOnce(url: string, acknowledged: readonly string[]): Promise<void> {
  const contacts = await contactsIn(url)
  const stored = new Set(contacts.map(({ email }) => email))
  assert.equal(stored.size, contacts.length)
  for (const email of acknowledged) assert.ok(stored.has(email), `${email} is lost`)
  assert.ok(contacts.every(({ events, deliveries }) => events === 1 && deliveries === 1))
}

const isAble = (store: Store): Promise<boolean> =>
  store.check().then(
    () => true,
    () => false,
  )

test('signups, claims, settlements and commands survive a crash right after their answer', {
  timeout: 60_000,
}, async t => {
  const { store, url } = await opened(t, 'provider')
  const crash = async () => {
    await server.stop('immediate')
    await server.start()
  }
  const states = async () => (await contactsIn(url)).map(({ state, events }) => [state, events])
  const handover = await pendingNow(store)
  await crash()
  assert.deepEqual(await states(), [['pending', 0]])
  assert.equal(await store.settle(handover, { is: 'listed', joined: true }), true)
  await crash()
  assert.deepEqual(await states(), [['listed', 1]])
  await store.claim('webhook', 1)
  const command = await postgresForCommand(url)
  await command.transaction(tx => tx.run("insert into secret (name, value) values ('a', 'b')"))
  await command.close()
  await crash()
  assert.equal((await rowsIn(url, 'select 1 from delivery where token is not null')).length, 1)
  assert.equal((await rowsIn(url, 'select 1 from secret')).length, 1)
  // That this server does forget is what makes the rest say something.
  await server.run(url, "update contact set name = 'Forgotten'")
  await crash()
  assert.ok((await contactsIn(url)).every(({ name }) => name !== 'Forgotten'))
})

for (const mode of ['fast', 'immediate'] as const) {
  test(`a ${mode} restart under load: what was acknowledged is there, and the same store goes on`, async t => {
    const { store, url } = await opened(t)
    const acknowledged: string[] = []
    let isOver = false
    const visitors = Array.from({ length: 4 }, async (_, line) => {
      for (let i = 0; !isOver; i++) {
        const email = `visitor-${line}-${i}@example.com`
        await store.admit(signup('Visitor', email)).then(
          () => acknowledged.push(email),
          error => {
            assert.ok(error instanceof StoreUnavailable, `${error}`)
            return wait(10)
          },
        )
      }
    })
    await wait(100)
    await server.stop(mode)
    await server.start()
    const before = acknowledged.length
    await until(() => acknowledged.length > before + 100)
    isOver = true
    await Promise.all(visitors)
    await assertEachOnce(url, acknowledged)
  })
}

test('the answer to a commit is lost: it is true all the same, or refused if the work may not be repeated', async t => {
  const { through, url, proxy } = await opened(t)
  const database = await postgresDatabase({ url: through, log: recordingLog().log })
  let isLossy = false
  const transaction: typeof database.transaction = (use, options) =>
    database.transaction(async tx => {
      const result = await use(tx)
      if (isLossy && !tx.again) {
        proxy.set({ is: 'black hole', loses: 'answers' })
        setTimeout(() => proxy.set({ is: 'none' }), 500)
      }
      return result
    }, options)
  const open = (provider: string | null) => {
    const targets = { eventName: 'joined', provider, destinations: ['webhook'], confirmation: null }
    return openStore({ ...database, transaction }, { targets, trackSources: false, holdReasons: null })
  }
  const [list, store] = [await open(null), await open('provider')]
  t.after(store.close)
  isLossy = true
  assert.equal((await list.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
  const once = store.transaction(tx => tx.insert('secret', [{ name: 'once', value: '' }]), { repeatable: false })
  await assert.rejects(once, StoreUnavailable)
  const delivery = await pendingNow(store)
  assert.deepEqual([delivery.attempts, delivery.doubt], [0, false], 'leased as if for the first time')
  const settlement = { is: 'listed', joined: true } as const
  assert.equal(await store.settle(delivery, settlement), true)
  isLossy = false
  assert.equal(await store.settle(delivery, settlement), false, 'the token is used up')
  await assertEachOnce(url, ['ada@example.com', 'bob@example.com'])
  assert.equal((await rowsIn(url, "select 1 from secret where name = 'once'")).length, 1)
})

test('when all connections lead nowhere, as after a failover, new ones are made', async t => {
  const { store, url, proxy } = await opened(t)
  // As many as there may be.
  await Promise.all(Array.from({ length: 30 }, () => store.claim('webhook', 1)))
  proxy.strand()
  assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
  assert.equal((await store.admit(signup('Bob', 'bob@example.com'))).is, 'listed now')
  assert.equal((await contactsIn(url)).length, 2)
})

test('a server that hangs is unavailable within bounds, and used again when it goes on', {
  timeout: 30_000,
}, async t => {
  const { store, url } = await opened(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  server.pause()
  try {
    const calls = [
      store.admit(signup('Bob', 'bob@example.com')),
      store.check(),
      ...Array.from({ length: 30 }, () => store.claim('webhook', 10)),
    ]
    await Promise.all(calls.map(call => assert.rejects(call, StoreUnavailable)))
  } finally {
    server.goOn()
  }
  await until(() => isAble(store))
  // Told once that it failed, he may be on the list all the same; twice he is not.
  await store.admit(signup('Bob', 'bob@example.com'))
  await assertEachOnce(url, ['ada@example.com', 'bob@example.com'])
})

test('while the disk is full, signups and checks fail, and the log says why; then both go on', async t => {
  const url = await server.database()
  const { log, logged } = recordingLog()
  const database = await postgresDatabase({ url, log })
  t.after(database.close)
  const targets = { eventName: 'joined', provider: null, destinations: [], confirmation: null }
  const store = await openStore(database, { targets, trackSources: false, holdReasons: null })
  await store.check()
  await server.run(
    url,
    `create function no_room() returns trigger language plpgsql as
      $$ begin raise exception 'No space left on device' using errcode = 'disk_full'; end $$`,
    'create trigger no_room before insert on contact for each row execute function no_room()',
  )
  await wait(1_000)
  await assert.rejects(store.check(), StoreUnavailable)
  await assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
  assert.deepEqual(
    logged.map(({ level, msg, why }) => [level, msg, why]),
    [[40, 'the database cannot be used', 'No space left on device (53100)']],
  )
  await server.run(url, 'drop function no_room cascade')
  await until(() => isAble(store))
  assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
})

for (const code of ['40P01', '40001', '25P03', '55P03']) {
  test(`what fails with ${code} is tried again`, async t => {
    const { store, url } = await opened(t)
    await server.run(
      url,
      // A sequence remembers, also where the transaction is rolled back.
      'create sequence tries',
      `create function fail_once() returns trigger language plpgsql as
        $$ begin if nextval('tries') = 1 then raise exception using errcode = '${code}'; end if; return new; end $$`,
      'create trigger fail_once before insert on contact for each row execute function fail_once()',
    )
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    assert.equal((await contactsIn(url)).length, 1)
  })
}

test('the error of a bug has no name and no address in it', async t => {
  const { store, url } = await opened(t)
  await server.run(url, "alter table contact add constraint never check (name <> 'Wilhelmina') not valid")
  await assert.rejects(store.admit(signup('Wilhelmina', 'somebody@example.com')), (error: Error) => {
    const text = `${inspect(error, { depth: null, showHidden: true })} ${JSON.stringify(error)}`
    assert.doesNotMatch(text, /Wilhelmina|somebody/)
    assert.match(text, /violates check constraint "never"/)
    return !(error instanceof StoreUnavailable)
  })
})

test('a transaction that took too long for the digests of channels is rolled back', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const { store } = await opened(t)
  const slow = store.transaction(async tx => {
    await tx.insert('secret', [{ name: 'slow', value: '' }])
    for (let i = 0; i < 3; i++) await tx.all('select pg_sleep(2.1)')
  })
  await assert.rejects(slow, /took too long/)
  assert.equal(await store.secret('slow').then(value => value.length), 64)
})

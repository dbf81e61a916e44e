/** What passes is waited for, for a short while; what does not ends in `StoreUnavailable`; nothing ends the process. */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { postgresStore } from '../../src/stores/postgres.ts'
import { type Registration, StoreUnavailable } from '../../src/waitlist/ports.ts'
import { signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-contacts.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { BOUND, openedOn } from './postgres.stage.ts'

const server = await startPostgres({ settings: { max_connections: '20' } })
after(() => server.remove())

const opened = openedOn(server)

/** Another session, for as long as it takes. */
async function session(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end().catch(() => {}))
  return client
}

test('a table that is locked for longer than signups wait is an outage, and passes', async t => {
  const { store, url } = await opened(t)
  const operator = await session(t, url)
  await operator.query('begin')
  await operator.query('lock table contact in access exclusive mode')
  const since = performance.now()
  await assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
  assert.ok(performance.now() - since < BOUND)
  const late = store.admit(signup('Bob', 'bob@example.com'))
  await operator.query('rollback')
  assert.equal((await late).is, 'listed now')
  assert.deepEqual(
    (await contactsIn(url)).map(({ email }) => email),
    ['bob@example.com'],
  )
})

test('a signup that is committed too late is given back: the provider was not asked, so nothing is in doubt', async t => {
  const { url } = await opened(t)
  const parts = { url, eventName: 'waitlist.joined', provider: 'provider', log: recordingLog().log }
  const store = await postgresStore({ ...parts, bounds: { batch: 256, queue: 1_000, patience: 200 } })
  t.after(() => store.close())
  const operator = await session(t, url)
  await operator.query('begin')
  await operator.query('lock table registration in access exclusive mode')
  await assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
  await operator.query('rollback')
  let due: readonly Registration[] = []
  await until(async () => {
    due = await store.beginDue('provider', 10, false)
    return due.length > 0
  })
  assert.deepEqual([due[0]!.attempts, due[0]!.doubt], [0, false])
})

test('a row that another session has inserted and not committed is waited for', async t => {
  const { store, url } = await opened(t)
  const operator = await session(t, url)
  for (const [end, is] of [
    ['rollback', 'listed now'],
    ['commit', 'already listed'],
  ] as const) {
    const email = `${end}@example.com`
    await operator.query('begin')
    await operator.query(
      "insert into contact (id, name, email, email_key, state, created_at) values (gen_random_uuid(), 'Eve', $1, $1, 'listed', now())",
      [email],
    )
    const answer = store.admit(signup('Ada', email))
    assert.equal(await Promise.race([answer, wait(200, 'waits')]), 'waits')
    await operator.query(end)
    assert.equal((await answer).is, is)
  }
})

test('where transactions are serializable, what conflicts is tried again', async t => {
  const { url } = await opened(t)
  await server.run(
    url,
    `alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = serializable`,
  )
  const parts = { url, eventName: 'waitlist.joined', destinations: ['webhook'], log: recordingLog().log }
  const stores = await Promise.all([postgresStore(parts), postgresStore(parts)])
  t.after(() => Promise.all(stores.map(store => store.close())))
  for (let round = 0; round < 10; round++) {
    const emails = Array.from({ length: 20 }, (_, i) => `visitor-${round}-${i}@example.com`)
    const answers = await Promise.all(stores.flatMap(store => emails.map(email => store.admit(signup('Ada', email)))))
    assert.equal(answers.filter(({ is }) => is === 'listed now').length, 20)
  }
})

test('a server without a free connection is an outage, and passes', async t => {
  const { store, url } = await opened(t)
  const others: pg.Client[] = []
  // All but those that are kept for superusers, of which there are none but this one.
  await server.run(url, "create role crowd login superuser password 'x'")
  const crowded = new URL(url)
  crowded.username = 'crowd'
  crowded.password = 'x'
  await server.run(url, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'waitlist'")
  for (;;) {
    const client = new pg.Client(crowded.href)
    client.on('error', () => {})
    const full = await client.connect().then(
      () => false,
      error => error.code === '53300',
    )
    if (full) break
    others.push(client)
  }
  await assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
  const late = store.admit(signup('Bob', 'bob@example.com'))
  await Promise.all(others.map(client => client.end()))
  assert.equal((await late).is, 'listed now')
})

test('a server that became read only takes no signups, and says so; then it takes them again', async t => {
  const { store, url } = await opened(t)
  const name = new URL(url).pathname.slice(1)
  const end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'waitlist'"
  await server.run(url, `alter database ${name} set default_transaction_read_only = on`, end)
  await assert.rejects(store.check(), StoreUnavailable)
  const late = store.admit(signup('Ada', 'ada@example.com'))
  await server.run(
    url,
    'set default_transaction_read_only = off',
    `alter database ${name} reset default_transaction_read_only`,
  )
  assert.equal((await late).is, 'listed now')
  await store.check()
})

test('a table that is not there is an outage, not a bug, and passes', async t => {
  const { store, url } = await opened(t)
  await server.run(url, 'alter table event rename to hidden')
  await assert.rejects(store.admit(signup('Ada', 'ada@example.com')), StoreUnavailable)
  await server.run(url, 'alter table hidden rename to event')
  assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
})

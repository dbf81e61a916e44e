/** What passes is waited for, for a short while; what does not ends in `StoreUnavailable`; nothing ends the process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import pg from 'pg'
import { postgres } from '../../src/stores/postgres/client.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { sharedPostgres, startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { openedOn } from './postgres.stage.ts'

const server = await sharedPostgres()
const opened = openedOn(server)

test('an outage in which some statements succeed, as on a full disk, is told once, and its end when none fails', async t => {
  const url = await server.database()
  const { log, logged } = recordingLog()
  const store = await postgresStore({ url, eventName: 'waitlist.joined', destinations: ['webhook'], log })
  t.after(() => store.close())
  const noRoom = `create function no_room() returns trigger language plpgsql as
    $$ begin raise exception 'No space left on device' using errcode = 'disk_full'; end $$`
  await server.run(
    url,
    noRoom,
    'create trigger no_room before insert on contact for each row execute function no_room()',
  )
  for (let i = 0; i < 10; i++) {
    await assert.rejects(store.admit(signup('Ada', `ada-${i}@example.com`)), /No space left.*53100/)
    assert.deepEqual(await store.claim('webhook', 1), [])
  }
  const told = () =>
    logged.filter(({ level, database }) => Number(level) >= 30 && database === undefined).map(({ msg }) => msg)
  assert.deepEqual(told(), ['the database cannot be used'])
  // It takes seconds to say.
  if (!isSlow) return
  await server.run(url, 'drop trigger no_room on contact')
  await until(async () => {
    await store.admit(signup('Ada', 'ada@example.com'))
    return told().length > 1
  })
  assert.deepEqual(told(), ['the database cannot be used', 'the database is used again'])
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

test('a server without a free connection is an outage, and passes', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const server = await startPostgres({ settings: { ...unsynced, max_connections: '20' } })
  t.after(() => server.remove())
  const { store, url } = await openedOn(server)(t)
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
  await server.run(
    url,
    `alter database ${name} set default_transaction_read_only = on`,
    `${end} and datname = current_database()`,
  )
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

for (const [what, code] of [
  ['a deadlock', '40P01'],
  ['a conflict of transactions', '40001'],
  ['a silence within a transaction that the server has ended', '25P03'],
]) {
  test(`${what} is tried again`, async t => {
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

test('what is told of a bug has no name and no address in it', async t => {
  const { store, url } = await opened(t)
  await server.run(url, "alter table contact add constraint never check (name <> 'Wilhelmina') not valid")
  await assert.rejects(store.admit(signup('Wilhelmina', 'somebody@example.com')), (error: Error) => {
    const told = `${inspect(error, { depth: null, showHidden: true })} ${JSON.stringify(error)}`
    assert.doesNotMatch(told, /Wilhelmina|somebody/)
    assert.match(told, /violates check constraint "never"/)
    return true
  })
})

test('the server itself ends what nobody waits for any more', async t => {
  const database = postgres({ url: await server.database(), timeout: 1_500, log: recordingLog().log })
  t.after(() => database.close())
  const text = "select name, setting::int as milliseconds from pg_settings where name like '%\\_timeout'"
  const rows = await database.run<{ name: string; milliseconds: number }>(text)
  const bounds = { statement_timeout: 1_500, lock_timeout: 1_500, idle_in_transaction_session_timeout: 10_000 }
  for (const [name, most] of Object.entries(bounds)) {
    const { milliseconds } = rows.find(row => row.name === name)!
    assert.ok(milliseconds > 0 && milliseconds <= most, `${name} is ${milliseconds}`)
  }
})

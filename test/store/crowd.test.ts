/** Several writers at once, in the ways in which they could get in each other's way. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { LEASE } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { isSlow } from '../harness/environment.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { installedPostgres, noInstalledPostgres, sharedPostgres, startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, rowsIn, session } from '../harness/postgres-database.ts'
import { storeAt } from '../harness/store.ts'
import { forEachEngine, handClock, numbersOf, onPostgres, pendingNow, signup } from './place.ts'

const provider = 'provider'
const destinations = ['webhook']
const listed = { is: 'listed', joined: true } as const
const removed = { is: 'removed', why: 'no such domain' } as const
const INSTANCES = 3
/** Of each instance, at once. */
const CROWD = 15

const visitors = (count: number, name = 'visitor') =>
  Array.from({ length: count }, (_, i) => `${name}-${i}@example.com`)

/** Takes until there is nothing more: a row that another instance is taking is skipped. */
async function takeAll<Item>(stores: readonly Store[], all: number, take: (store: Store) => Promise<readonly Item[]>) {
  const taken: Item[] = []
  while (taken.length < all) {
    const some = await Promise.all(stores.flatMap(store => Array.from({ length: CROWD }, () => take(store))))
    taken.push(...some.flat())
  }
  const more = await Promise.all(stores.map(take))
  return [...taken, ...more.flat()]
}

/** What a store promises to several instances, or to a crowd at one where there can be no other. */
forEachEngine('a crowd at several instances', place => {
  test('no delivery is leased to two, also while more are born; of all that settle one, one is told that it did', async t => {
    const stores = await (await place(t)).instances(INSTANCES, { destinations })
    const admitted = visitors(300).map((email, i) => stores[i % stores.length]!.admit(signup('Visitor', email)))
    const taken = await takeAll(stores, 300, store => store.claim('webhook', 4))
    await Promise.all(admitted)
    assert.equal(taken.length, 300)
    assert.equal(new Set(numbersOf(taken)).size, 300)
    const twice = [...taken, ...taken].map((each, i) => stores[i % stores.length]!.settle(each, { is: 'delivered' }))
    assert.equal((await Promise.all(twice)).filter(Boolean).length, 300)
  })

  test('no hand-over is leased to two, due or claimed for its contact', async t => {
    const clock = handClock()
    const stores = await (await place(t)).instances(INSTANCES, { provider, clock: clock.read })
    const emails = visitors(200)
    const pending = await Promise.all(emails.map(email => pendingNow(stores[0]!, email)))
    clock.pass(LEASE)
    let calls = 0
    const taken = await takeAll(stores, 200, store =>
      calls++ % 3 > 0 ? store.claim(provider, 3) : store.claim(provider, 1, emails[calls % 200]!),
    )
    assert.deepEqual(numbersOf(taken).sort(), numbersOf(pending).sort())
    assert.ok(taken.every(({ doubt, attempts }) => doubt && attempts === 0))
  })

  test('while an address is refused, nobody who signs up with it hears that it is listed', async t => {
    const stores = await (await place(t)).instances(INSTANCES, { provider })
    for (let round = 0; round < 20; round++) {
      const email = `visitor-${round}@example.com`
      const delivery = await pendingNow(stores[0]!, email)
      const refused = stores[0]!.settle(delivery, removed)
      const crowd = stores.flatMap(store => Array.from({ length: 5 }, () => store.admit(signup('Visitor', email))))
      const answers = await Promise.all(crowd)
      assert.equal(await refused, true)
      assert.ok(answers.every(({ is }) => is !== 'already listed'))
      assert.ok(answers.filter(({ is }) => is === 'pending now').length <= 1)
    }
  })
})

const server = await sharedPostgres()

test('4 writers with the same addresses in other orders: each once, and no deadlock', async t => {
  const url = await server.database()
  const name = new URL(url).pathname.slice(1)
  await server.run(url, `alter database ${name} set deadlock_timeout = '10ms'`)
  const open = () => storeAt({ kind: 'postgres', url }, { destinations })
  const stores = [await open(), await open(), await open(), await open()]
  for (const store of stores) t.after(store.close)
  // Each row takes a millisecond, so that statements which meet are sure to overlap.
  await server.run(
    url,
    `create function slow() returns trigger language plpgsql as
      $$ begin perform pg_sleep(0.001); return new; end $$`,
    'create trigger slow before insert on contact for each row execute function slow()',
  )
  // Each begins elsewhere.
  const orders = [1, -1, 7, -7].map((step, writer) => (i: number) => (400 + 3 * writer + i * step) % 12)
  for (let round = 0; round < 10; round++) {
    const emails = visitors(12, `visitor-${round}`)
    const answers = await Promise.allSettled(
      stores.flatMap((store, s) => emails.map((_, i) => store.admit(signup('Visitor', emails[orders[s]!(i)]!)))),
    )
    const refused = answers.filter(({ status }) => status === 'rejected')
    const added = answers.filter(answer => answer.status === 'fulfilled' && answer.value.is === 'listed now')
    // A machine may be so busy that the store gives up.
    assert.ok(added.length === 12 || refused.length > 0)
  }
  const contacts = await contactsIn(url)
  assert.equal(new Set(contacts.map(({ email }) => email)).size, contacts.length)
  assert.ok(contacts.every(({ events, deliveries }) => events === 1 && deliveries === 1))
  const text = 'select deadlocks::int from pg_stat_database where datname = current_database()'
  assert.deepEqual(await rowsIn(url, text), [{ deadlocks: 0 }])
})

test('a delivery that another session has locked is skipped, not waited for', async t => {
  const here = await onPostgres(t)
  const store = await here.open({ destinations })
  for (const email of visitors(3)) await store.admit(signup('Visitor', email))
  assert.ok(here.location.kind === 'postgres')
  const operator = await session(t, here.location.url)
  await operator.query('begin; select 1 from delivery order by number limit 1 for update')
  assert.equal((await store.claim('webhook', 10)).length, 2)
})

const SETTINGS =
  "select current_setting('transaction_isolation') as isolation, current_setting('synchronous_commit') as sync," +
  " current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock," +
  " current_setting('idle_in_transaction_session_timeout') as idle"

/** Whatever the role or the database says. */
async function assertSettings(store: Store): Promise<void> {
  const expected = { isolation: 'read committed', sync: 'on', statement: '2400ms', lock: '2s', idle: '10s' }
  assert.deepEqual(await store.transaction(tx => tx.all(SETTINGS)), [expected])
}

test('a transaction sets what it relies on, where the database has other defaults', async t => {
  const here = await onPostgres(t)
  assert.ok(here.location.kind === 'postgres')
  const { url } = here.location
  for (const setting of ["default_transaction_isolation = 'serializable'", 'synchronous_commit = off'])
    await server.run(url, `alter database ${new URL(url).pathname.slice(1)} set ${setting}`)
  await assertSettings(await here.open())
})

const missing = !isSlow
  ? 'it runs in .ci/run'
  : pgBouncerProgram === undefined
    ? noPgBouncer
    : installedPostgres() === undefined && noInstalledPostgres

test('an older PostgreSQL, through PgBouncer in transaction mode, with fewer connections than one store asks for', {
  skip: missing,
  timeout: 60_000,
}, async t => {
  const older = await startPostgres({
    settings: { ...unsynced, synchronous_commit: 'off' },
    programs: installedPostgres(),
  })
  const bouncer = await startPgBouncer(older.port, 2)
  after(async () => {
    await bouncer.stop()
    await older.remove()
  })
  const url = await older.database()
  const open = () => storeAt({ kind: 'postgres', url: bouncer.through(url) }, { provider, destinations })
  const stores = [await open(), await open()]
  for (const store of stores) t.after(store.close)
  const admissions = await Promise.all(
    stores.flatMap(store => visitors(200).map(email => store.admit(signup('Ada', email)))),
  )
  const begun = admissions.flatMap(each => (each.is === 'pending now' ? [each.delivery] : []))
  assert.equal(begun.length, 200)
  const settled = await Promise.all(begun.map((each, i) => stores[i % 2]!.settle(each, listed)))
  assert.ok(settled.every(Boolean))
  await assertSettings(stores[0]!)
  assert.ok((await contactsIn(url)).every(({ events, deliveries }) => events === 1 && deliveries === 1))
})

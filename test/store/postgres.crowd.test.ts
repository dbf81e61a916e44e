/** Several writers on one server, in the ways in which they could get in each other's way; and PgBouncer before it. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { StoreUnavailable } from '../../src/store/database.ts'
import { isSlow } from '../harness/environment.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { installedPostgres, noInstalledPostgres, sharedPostgres, startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, rowsIn, session } from '../harness/postgres-database.ts'
import { pendingNow, signup } from './place.ts'
import { storeAt } from './postgres.place.ts'

const listed = { is: 'listed', joined: true } as const
const removed = { is: 'removed', why: 'no such domain' } as const

const server = await sharedPostgres()

/** Where a deadlock is found at once, and counted at once. */
async function impatient(): Promise<string> {
  const url = await server.database()
  await server.run(url, `alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '10ms'`)
  return url
}

async function deadlocks(url: string): Promise<number> {
  const text = 'select deadlocks::int from pg_stat_database where datname = current_database()'
  return (await rowsIn<{ deadlocks: number }>(url, text))[0]!.deadlocks
}

/** Waits for all of them, also where one fails: what goes on would meet the next round. */
async function allOf<const Promises extends readonly unknown[]>(promises: Promises) {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

/**
 * Does it anew, with other addresses, where the machine was so busy that the store gave up: then nothing is shown. That there
 * was no deadlock must be so each time.
 */
async function unlessTooBusy(round: (name: string) => Promise<void>, name: string): Promise<void> {
  for (let again = 0; ; again++) {
    try {
      return await round(`${name}-${again}`)
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || again === 10) throw error
    }
  }
}

test('4 writers with the same addresses in other orders: each once, and no deadlock', async t => {
  const url = await impatient()
  const stores = await Promise.all(Array.from({ length: 4 }, () => storeAt(t, url)))
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
    await unlessTooBusy(async name => {
      const emails = Array.from({ length: 12 }, (_, i) => `${name}-${i}@example.com`)
      const answers = await allOf(
        stores.flatMap((store, s) => emails.map((_, i) => store.admit(signup('Visitor', emails[orders[s]!(i)]!)))),
      )
      assert.equal(answers.filter(({ is }) => is === 'listed now').length, 12)
    }, `visitor-${round}`)
  }
  const contacts = await contactsIn(url)
  assert.equal(new Set(contacts.map(({ email }) => email)).size, contacts.length)
  assert.ok(contacts.every(({ events, deliveries }) => events === 1 && deliveries === 1))
  assert.equal(await deadlocks(url), 0)
})

test('hand-overs that several settle at once, in other orders: each ends once, and there is no deadlock', async t => {
  const url = await impatient()
  const [one, other] = [await storeAt(t, url, 'provider'), await storeAt(t, url, 'provider')]
  for (let round = 0; round < 10; round++) {
    await unlessTooBusy(async name => {
      const emails = Array.from({ length: 24 }, (_, i) => `${name}-${i}@example.com`)
      const begun = await allOf(emails.map(email => pendingNow(one, email)))
      const ends = (i: number) => (i % 3 === 0 ? removed : listed)
      const answers = await allOf([
        ...begun.map((each, i) => one.settle(each, ends(i))),
        ...begun
          .map((each, i) => [each, i] as const)
          .reverse()
          .map(([each, i]) => other.settle(each, ends(i))),
      ])
      assert.equal(answers.filter(Boolean).length, emails.length)
      const contacts = (await contactsIn(url)).filter(({ email }) => email.startsWith(name))
      assert.equal(contacts.length, 16)
      assert.ok(contacts.every(({ state, events, deliveries }) => state === 'listed' && events + deliveries === 2))
    }, `visitor-${round}`)
  }
  assert.equal(await deadlocks(url), 0)
})

test('a delivery that another session has locked is skipped, not waited for', async t => {
  const url = await server.database()
  const store = await storeAt(t, url)
  for (const name of ['a', 'b', 'c']) await store.admit(signup('Visitor', `${name}@example.com`))
  const operator = await session(t, url)
  await operator.query('begin; select 1 from delivery order by number limit 1 for update')
  assert.equal((await store.claim('webhook', 10)).length, 2)
})

test('where transactions are serializable or repeatable by default, what conflicts is stored all the same', async t => {
  for (const isolation of ['serializable', 'repeatable read']) {
    const url = await server.database()
    await server.run(
      url,
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = '${isolation}'`,
    )
    const stores = [await storeAt(t, url), await storeAt(t, url)]
    for (let round = 0; round < 5; round++) {
      const emails = Array.from({ length: 20 }, (_, i) => `visitor-${round}-${i}@example.com`)
      const answers = await Promise.all(stores.flatMap(store => emails.map(email => store.admit(signup('Ada', email)))))
      assert.equal(answers.filter(({ is }) => is === 'listed now').length, 20)
    }
  }
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
  const stores = [
    await storeAt(t, bouncer.through(url), 'provider'),
    await storeAt(t, bouncer.through(url), 'provider'),
  ]
  const emails = Array.from({ length: 200 }, (_, i) => `visitor-${i}@example.com`)
  const admissions = await Promise.all(stores.flatMap(store => emails.map(email => store.admit(signup('Ada', email)))))
  const begun = admissions.flatMap(each => (each.is === 'pending now' ? [each.delivery] : []))
  assert.equal(begun.length, 200)
  const settled = await Promise.all(begun.map((each, i) => stores[i % 2]!.settle(each, listed)))
  assert.ok(settled.every(Boolean))
  // What belongs to a transaction stays with it.
  const setting = await stores[0]!.transaction(tx =>
    tx.all<{ synced: string }>("select current_setting('synchronous_commit') as synced"),
  )
  assert.deepEqual(setting, [{ synced: 'on' }])
  assert.ok((await contactsIn(url)).every(({ events, deliveries }) => events === 1 && deliveries === 1))
})

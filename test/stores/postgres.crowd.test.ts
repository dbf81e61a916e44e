/** Several writers on one server, in the ways in which they could get in each other's way. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type pg from 'pg'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { type Store, StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { idOf, numberOf, pendingNow, signup } from '../contracts/store.place.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { session } from './postgres.stage.ts'

const listed = { is: 'listed', joined: true } as const
const removed = { is: 'removed', why: 'no such domain' } as const

const server = await sharedPostgres()

const open = (url: string, provider: string | null = null) =>
  postgresStore({ url, eventName: 'waitlist.joined', destinations: ['webhook'], provider, log: recordingLog().log })

/** Where a deadlock is found at once, and counted at once. */
async function impatient(): Promise<string> {
  const url = await server.database()
  await server.run(url, `alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '10ms'`)
  return url
}

const WAITING =
  "select 1 from pg_stat_activity where datname = current_database() and application_name = 'waitlist' and wait_event_type = 'Lock'"

/** Waits for all of them, also where one fails: what goes on would meet the next round. */
async function allOf<const Promises extends readonly unknown[]>(promises: Promises) {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

/** How many statements wait for a lock, as another session sees it. */
const waiting = async (beside: pg.Client) => (await beside.query(WAITING)).rows.length

/**
 * Does it anew, with other addresses, where the machine was so busy that the store gave up: then nothing is shown. That there
 * was no deadlock must be so each time.
 */
async function unlessTooBusy(round: (name: string) => Promise<void>, name: string): Promise<void> {
  for (let again = 0; ; again++) {
    try {
      return await round(`${name}-${again}`)
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || again === 20) throw error
    }
  }
}

async function deadlocks(url: string): Promise<number> {
  const text = 'select deadlocks::int from pg_stat_database where datname = current_database()'
  return (await rowsIn<{ deadlocks: number }>(url, text))[0]!.deadlocks
}

test('4 writers with the same addresses in other orders: each once, and no deadlock', async () => {
  const url = await impatient()
  const stores = await Promise.all(Array.from({ length: 4 }, () => open(url)))
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
      const admissions = stores.flatMap((store, s) =>
        emails.map((_, i) => store.admit(signup('Visitor', emails[orders[s]!(i)]!))),
      )
      const answers = await allOf(admissions)
      assert.equal(answers.filter(({ is }) => is === 'listed now').length, 12)
      assert.equal(new Set(answers.map(idOf)).size, 13, 'each id once, and none')
    }, `visitor-${round}`)
  }
  const contacts = await contactsIn(url)
  assert.equal(new Set(contacts.map(({ email }) => email)).size, contacts.length)
  assert.ok(contacts.every(({ events, deliveries }) => events === 1 && deliveries === 1))
  await Promise.all(stores.map(store => store.close()))
  assert.equal(await deadlocks(url), 0)
})

test('hand-overs that several settle at once, in other orders: no deadlock', async t => {
  const url = await impatient()
  // The third was started without the provider, and lists those who sign up again.
  const stores = await Promise.all([open(url, 'provider'), open(url, 'provider'), open(url)])
  const [one, other, without] = stores as [Store, Store, Store]
  const [operator, beside] = [await session(t, url), await session(t, url)]
  for (const ends of [[listed], [listed, removed]]) {
    await unlessTooBusy(async name => {
      const emails = Array.from({ length: 12 }, (_, i) => `${name}-${i}@example.com`)
      const begun = await allOf(emails.map(email => pendingNow(one, email)))
      // Those who lock from one end and those who lock from the other meet here.
      await operator.query('begin')
      await operator.query('select 1 from delivery where number = $1 for update', [begun[6]!.number])
      const settled = allOf([
        ...begun.map((each, i) => one.settle(each, ends[i % ends.length]!)),
        ...begun.toReversed().map((each, i) => other.settle(each, ends[i % ends.length]!)),
      ])
      const admitted = allOf(emails.toReversed().map(email => without.admit(signup('Visitor', email))))
      let gaveUp = false
      Promise.all([settled, admitted]).catch(() => {
        gaveUp = true
      })
      await until(async () => gaveUp || (await waiting(beside)) === 3)
      await operator.query('rollback')
      const [answers, admissions] = await allOf([settled, admitted])
      const told = answers.filter(Boolean).length + admissions.filter(({ is }) => is === 'listed now').length
      // An address that was removed is listed by the signup that comes after.
      assert.ok(told >= emails.length)
      if (ends.length === 1) assert.equal(told, emails.length)
      const contacts = (await contactsIn(url)).filter(({ email }) => email.startsWith(name))
      assert.equal(contacts.length, emails.length)
      assert.ok(contacts.every(({ state, events, deliveries }) => state === 'listed' && events + deliveries === 2))
    }, `visitor-${ends.length}`)
  }
  await Promise.all(stores.map(store => store.close()))
  assert.equal(await deadlocks(url), 0)
})

test('a row that somebody has locked is passed over, not waited for', async t => {
  const url = await server.database()
  const store = await open(url, 'provider')
  t.after(() => store.close())
  const begun = await Promise.all(['a', 'b', 'c'].map(name => pendingNow(store, `${name}@example.com`)))
  await Promise.all(begun.map(each => store.settle(each, listed)))
  const later = await Promise.all(['x', 'y', 'z'].map(name => pendingNow(store, `${name}@example.com`)))
  const again = { is: 'waiting', wait: 0, doubt: false, why: 'no connection' } as const
  const contact = await numberOf(store, 'x@example.com')
  await Promise.all(later.map(each => store.settle(each, again)))
  const operator = await session(t, url)
  await operator.query('begin')
  await operator.query("select 1 from delivery where destination = 'webhook' order by due_at limit 1 for update")
  await operator.query('select 1 from delivery where number = $1 for update', [later[0]!.number])
  assert.equal((await store.claim('webhook', 10)).length, 2)
  assert.deepEqual(await store.claim('provider', 10, contact), [])
  assert.equal((await store.claim('provider', 1)).length, 1)
  assert.equal((await store.claim('provider', 10)).length, 1)
  await operator.query('rollback')
  assert.equal((await store.claim('webhook', 10)).length, 1)
  assert.equal((await store.claim('provider', 10, contact)).length, 1)
})

test('a signup that an instance with the earlier provider takes is handed to the new one within a minute', async t => {
  const url = await server.database()
  const clock = { now: Date.now() }
  const parts = { url, eventName: 'waitlist.joined', log: recordingLog().log, clock: () => clock.now }
  const [earlier, later] = [
    await postgresStore({ ...parts, provider: 'a' }),
    await postgresStore({ ...parts, provider: 'b' }),
  ]
  t.after(() => Promise.all([earlier.close(), later.close()]))
  assert.deepEqual(await later.claim('b', 10), [])
  await pendingNow(earlier, 'ada@example.com')
  clock.now += 60_000
  assert.deepEqual(
    (await later.claim('b', 10)).map(({ contact, doubt }) => [contact.email, doubt]),
    [['ada@example.com', false]],
  )
})

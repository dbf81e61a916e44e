/** What is due is found by its index among very many that are not. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres.ts'
import { pendingNow, signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'

const server = await startPostgres({ settings: { fsync: 'off' } })
after(() => server.remove())

/** How often a table was read from its beginning to its end. Written when a session ends. */
async function wholeReads(url: string): Promise<Record<string, number>> {
  const text =
    "select relname as name, seq_scan::int as reads from pg_stat_user_tables where relname <> 'waitlist_schema'"
  const rows = await rowsIn<{ name: string; reads: number }>(url, text)
  return Object.fromEntries(rows.map(({ name, reads }) => [name, reads]))
}

test('no table is read as a whole, with 100,000 rows done and 1,000 waiting', { timeout: 60_000 }, async () => {
  const url = await server.database()
  const open = () =>
    postgresStore({
      ...{ url, eventName: 'waitlist.joined', destinations: ['webhook'], provider: 'provider' },
      log: recordingLog().log,
    })
  await (await open()).close()
  await server.run(
    url,
    `insert into contact (id, name, email, email_key, state, created_at)
      select gen_random_uuid(), 'Visitor', 'v' || i || '@example.com', 'v' || i || '@example.com',
        case when i <= 100000 then 'listed' else 'pending' end, now() from generate_series(1, 110000) as i`,
    "insert into event (contact, name, created_at) select number, 'waitlist.joined', created_at from contact where state = 'listed'",
    `insert into delivery (contact, destination, state, due_at)
      select contact, destination, case when contact <= 99000 then 'delivered' else 'waiting' end, now()
        + case when contact % 2 = 0 then interval '1 day' else interval '0' end
      from event cross join unnest(array['webhook', 'crm']) as destination`,
    `insert into registration (contact, provider, due_at) select number, 'provider', now()
      + case when number % 100 = 0 then interval '0' else interval '1 day' end from contact where state = 'pending'`,
    'analyze',
  )
  const before = await wholeReads(url)
  const store = await open()
  const deliveries = await store.claim('webhook', 20)
  assert.equal(deliveries.length, 20)
  await Promise.all(deliveries.map(each => store.settle(each, { is: 'delivered' })))
  const due = await store.beginDue('provider', 20, false)
  assert.equal(due.length, 20)
  assert.equal((await store.beginDue('provider', 20, true)).length, 20)
  const [first, ...rest] = due
  await Promise.all(rest.map(each => store.conclude(each, { is: 'created' })))
  assert.equal((await store.begin(first!.contact.id, 'provider')).is, 'taken')
  await pendingNow(store, 'new@example.com')
  assert.equal((await store.admit(signup('Known', 'v1@example.com'))).is, 'already listed')
  assert.equal((await store.admit(signup('Pending', 'v110000@example.com'))).is, 'still pending')
  await store.check()
  await store.close()
  const after = await wholeReads(url)
  assert.equal(Object.keys(after).length, 4)
  assert.deepEqual(after, before)
})

/** Whatever is asked is found by an index among very many rows that are not asked for. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { postgresOperator } from '../../src/stores/postgres/engine.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { Digest } from '../../src/waitlist/ports/outbox.ts'
import { DAY, numberOf, only, pendingNow, signup } from '../contracts/store.place.ts'
import { installedPostgres, startPostgres, unsynced } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-database.ts'
import { messageProxy } from '../harness/postgres-messages.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

/** How often a table was read from its beginning to its end, and rows of its indexes. Written when a session ends. */
async function reads(url: string): Promise<{ whole: Record<string, number>; entries: number }> {
  const text =
    'select relname as name, seq_scan::int as reads, (select sum(idx_tup_read)::int from pg_stat_user_indexes) as entries' +
    " from pg_stat_user_tables where relname not in ('waitlist_schema', 'turn', 'erased', 'spent', 'arrival', 'secret')"
  const rows = await rowsIn<{ name: string; reads: number; entries: number }>(url, text)
  return { whole: Object.fromEntries(rows.map(({ name, reads }) => [name, reads])), entries: rows[0]!.entries }
}

const SESSIONS = "from pg_stat_activity where application_name = 'waitlist' and datname = current_database()"

const PENDING = 12_000
const LISTED = 18_000

/** As many pending, almost all of them not due; as many listed, almost all of them told. */
const rows = [
  `insert into contact (id, name, email, email_key, state, created_at, event_name, event_at)
    select gen_random_uuid(), 'Visitor', 'v' || i || '@example.com', 'v' || i || '@example.com',
      case when listed then 'listed' else 'pending' end, now(), case when listed then 'waitlist.joined' end,
      case when listed then now() end
    from (select i, i <= ${LISTED} as listed from generate_series(1, ${LISTED + PENDING}) as i) as visitor`,
  `insert into delivery (contact, destination, attempts, state, due_at)
    select number, destination, 9, case when number <= ${LISTED} - 1000 then 'delivered' else 'waiting' end, now()
      + case when number % 2 = 0 then interval '1 day' else interval '0' end
    from contact cross join unnest(array['webhook', 'crm']) as destination where contact.state = 'listed'`,
  `insert into delivery (contact, destination, attempts, due_at)
    select number, 'provider', 9, now() + case when number % 100 = 0 then interval '0' else interval '1 day' end
    from contact where state = 'pending'`,
  "update delivery set state = 'abandoned' where state = 'delivered' and number % 100 = 0",
]

const skip = !isSlow && 'it runs in .ci/run'

// An older one is asked in .ci/run, as in postgres.test.ts.
for (const programs of new Set([undefined, installedPostgres()])) {
  const title = programs === undefined ? 'PostgreSQL' : `the PostgreSQL in ${programs}`
  describe(`with ${LISTED} listed and ${PENDING} pending, in ${title}`, { timeout: 120_000, skip }, async () => {
    const server = await startPostgres({ settings: unsynced, programs })
    after(() => server.remove())

    for (const analyzed of programs === undefined ? [true, false] : [true]) {
      test(`no table is read as a whole, ${analyzed ? 'when' : 'nor before'} the server knows how large it is`, async t => {
        const url = await server.database()
        const parts = { eventName: 'waitlist.joined', destinations: ['webhook'], provider: 'provider' }
        const open = (at: string) => postgresStore({ url: at, ...parts, log: recordingLog().log })
        await (await open(url)).close()
        await server.run(url, ...rows, ...(analyzed ? ['analyze'] : []))
        const proxy = await messageProxy(server.port)
        t.after(() => proxy.close())
        const store = await open(proxy.through(url))
        // The opening alone looks at all who are pending; a session tells what it read when it ends.
        const endSessions = async () => {
          await rowsIn(url, `select pg_terminate_backend(pid) ${SESSIONS}`)
          await until(async () => (await rowsIn(url, `select 1 ${SESSIONS}`)).length === 0)
        }
        await endSessions()
        const opening = await reads(url)
        const numbers = async (which: string) => {
          const text = `select number from delivery where destination = 'provider' and state = 'waiting' and ${which}`
          const found = await rowsIn<{ number: string }>(`${url}?options=-c%20enable_seqscan%3Doff`, text)
          return found.map(({ number }) => number)
        }
        const dueNumbers = await numbers('due_at < now()')
        await endSessions()
        const before = await reads(url)

        const deliveries = await store.claim('webhook', 20)
        assert.equal(deliveries.length, 20)
        await Promise.all(deliveries.map(each => store.settle(each, { is: 'delivered' })))
        // As many as are asked for in earnest: the server would rather read a table than look up so many.
        const digest = (await store.claimDigest('crm', 10_000, 60_000)) as Digest
        assert.ok(digest.deliveries.length > 400)
        assert.equal(await store.settleDigest(digest, { is: 'delivered' }, 60_000), true)
        assert.equal(typeof (await store.claimDigest('crm', 20, 60_000)), 'number')
        const [first, second, ...rest] = await store.claim('provider', 20)
        assert.equal(rest.length, 18)
        await Promise.all(rest.map(each => store.settle(each, { is: 'listed', joined: true })))
        await store.settle(first!, { is: 'removed', why: 'no such domain' })
        await store.settle(second!, { is: 'waiting', wait: DAY, doubt: true, why: 'timed out' })
        await pendingNow(store, 'new@example.com')
        assert.equal((await store.admit(signup('Known', 'v1@example.com'))).is, 'already listed')
        const contact = await numberOf(store, `v${LISTED + 1}@example.com`)
        await store.settle(await only(store, 'provider', contact), { is: 'abandoned', why: 'given up' })
        assert.equal(await store.prune(DAY, 500), 0)
        assert.equal(await store.expire(DAY, 500), 0)
        assert.equal(await store.confirm({ id: randomUUID(), email: 'v3@example.com' }), null)
        assert.equal(await store.leave('nobody@example.com'), false)
        await store.check()
        // More than are due: thousands wait until tomorrow, and none of them is read.
        const left = await store.claim('provider', 200)
        assert.ok(left.length > 0 && left.length <= dueNumbers.length, `${left.length} were claimed`)
        await store.close()

        const operator = postgresOperator(url)
        assert.equal((await operator.deliveries({ limit: 50 })).length, 50)
        assert.equal((await operator.deliveries({ state: 'abandoned', limit: 50 })).length, 50)
        assert.equal((await operator.deliveries({ state: 'waiting', destination: 'provider', limit: 50 })).length, 50)
        assert.notEqual(await operator.delivery(1), undefined)
        await operator.replay({ numbers: [1, 2, 3] })
        assert.equal((await operator.erase('v2@example.com'))?.deliveries.waiting, 1)
        await operator.replay({ abandoned: true, destination: 'crm' })

        // Until every session has told what it read.
        let since = await reads(url)
        await until(async () => {
          const now = await reads(url)
          const still = now.entries === since.entries
          since = now
          return still && now.entries > before.entries
        })
        assert.deepEqual(Object.keys(since.whole).sort(), ['contact', 'delivery'])
        assert.deepEqual(since.whole, opening.whole)
        if (analyzed) assert.ok(since.entries - before.entries < 10_000, `${since.entries - before.entries} entries`)
      })
    }
  })
}

/**
 * What was answered is synced to disk, also where the server is told not to: it is ended like a crash right after the
 * answer, while its own habit would be to write the log ten seconds later.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { pendingNow, signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const lazy = { synchronous_commit: 'off', wal_writer_delay: '10s', wal_writer_flush_after: '1GB', autovacuum: 'off' }
const server = await startPostgres({ settings: lazy })
after(() => server.remove())

async function crash(): Promise<void> {
  await server.stop('immediate')
  await server.start()
}

test('signups and settlements survive a crash right after their answer; at full length, leases and every kind of end', {
  timeout: 60_000,
}, async t => {
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

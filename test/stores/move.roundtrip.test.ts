import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { begun, handClock, pendingNow, signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { startPostgres } from '../harness/postgres.ts'
import { recordingLog } from '../harness/service.ts'
import {
  contactRow,
  type List,
  listIn,
  listOn,
  manyContacts,
  moved,
  postgres,
  query,
  sqlite,
  unleased,
  writeList,
} from './move.scene.ts'

const server = await startPostgres()
after(() => server.remove())

/** Milliseconds since 1970, up to the year 2200. */
const time = fc.integer({ min: 0, max: 7_258_118_400_000 })
const uuid = fc.uuid()
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null })
const bit = fc.constantFrom(0, 1)
const attempts = fc.integer({ min: 0, max: 1_000 })
/** Text as it may stand in a list: no control characters, well-formed, any script, and what arrays and JSON must escape. */
const text = fc
  .oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom('NULL', '"', '\\', '{a,b}', "'; --", ' ', '0'))
  .filter(each => each.isWellFormed() && !/\p{Cc}/u.test(each))

const person = fc.record({
  gap: fc.integer({ min: 1, max: 1_000_000 }),
  id: uuid,
  name: text,
  createdAt: time,
  providerId: orNull(text),
  // Listed with an event, listed as one whom the provider had before, or pending.
  is: fc.constantFrom('joined', 'known', 'pending'),
  event: fc.record({ name: text, at: time }),
  registration: fc.record({
    ...{ provider: orNull(text), attempts, doubt: bit, due_at: time, token: orNull(uuid), why: orNull(text) },
  }),
  deliveries: fc.uniqueArray(
    fc.record({
      ...{ destination: text, state: fc.constantFrom('waiting', 'delivered', 'abandoned'), attempts, doubt: bit },
      ...{ due_at: time, token: orNull(uuid), why: orNull(text), settled_at: orNull(time) },
    }),
    { maxLength: 3, selector: ({ destination }) => destination },
  ),
})

const lists = fc.uniqueArray(person, { maxLength: 12, selector: ({ id }) => id }).map((people): List => {
  let number = 0
  let delivery = 0
  const all = people.map(each => {
    number += each.gap
    return { ...each, number }
  })
  const joined = all.filter(each => each.is === 'joined')
  return {
    contact: all.map(({ number, id, name, is, createdAt, providerId }) => ({
      ...{ number, id, name, email: `V${number}@Example.com`, email_key: `v${number}@example.com` },
      ...{ state: is === 'pending' ? 'pending' : 'listed', created_at: createdAt, provider_id: providerId },
    })),
    event: joined.map(({ number, event }) => ({ contact: number, name: event.name, created_at: event.at })),
    registration: all
      .filter(each => each.is === 'pending')
      .map(({ number, registration }) => ({ contact: number, ...registration })),
    delivery: joined.flatMap(({ number, deliveries }) =>
      deliveries.map(each => {
        delivery += 3
        // Only what waits is leased.
        return { number: delivery, contact: number, ...each, token: each.state === 'waiting' ? each.token : null }
      }),
    ),
  }
})

describe('moving a list', { timeout: 120_000 }, () => {
  test('any list goes to PostgreSQL and back, and is the same', async t => {
    const folder = temporaryFolder(t)
    let runs = 0
    await fc.assert(
      fc.asyncProperty(lists, fc.integer({ min: 1, max: 5 }), async (list, batch) => {
        const [there, back, again] = [1, 2, 3].map(n => join(folder, `${++runs}-${n}.db`)) as [string, string, string]
        const url = await server.database()
        writeList(there, list)
        assert.equal((await moved(sqlite(there), postgres(url), { batch })).is, 'moved')
        assert.deepEqual(await listOn(url), unleased(list))
        assert.equal((await moved(postgres(url), sqlite(back), { batch })).is, 'moved')
        assert.deepEqual(listIn(back), unleased(list))
        assert.equal((await moved(sqlite(back), sqlite(again), { batch })).is, 'moved')
        assert.deepEqual(listIn(again), unleased(list))
        assert.deepEqual(listIn(there), list, 'the source is left as it was')
      }),
      // Each try makes databases, so a smaller example would take minutes; the seed finds it again.
      { numRuns: 15, endOnFailure: true },
    )
  })

  test('what was leased is in doubt for whoever takes it next, and nothing else is', async t => {
    const folder = temporaryFolder(t)
    const clock = handClock()
    const path = join(folder, 'waitlist.db')
    const url = await server.database()
    const options = { eventName: 'waitlist.joined', destinations: ['webhook'], clock: clock.read }
    const here = await sqliteStore({ path, ...options, provider: 'loops', minimumFree: 0 })
    const asked = await pendingNow(here, 'asked@example.com')
    const failed = await pendingNow(here, 'failed@example.com')
    const sure = { is: 'pending', wait: 1, doubt: false, why: 'no connection' } as const
    await here.conclude(failed, sure)
    for (const email of ['told@example.com', 'waits@example.com']) {
      await here.conclude(await pendingNow(here, email), { is: 'created', providerId: `of-${email}` })
    }
    const [told] = await here.claim('webhook', 1)
    assert.equal(told?.event.contact.email, 'told@example.com')
    await here.close()

    assert.equal((await moved(sqlite(path), postgres(url))).is, 'moved')
    clock.pass(61_000)
    const there = await postgresStore({ url, ...options, provider: 'loops', log: recordingLog().log })
    t.after(() => there.close())
    const { doubt, attempts } = await begun(there, asked.contact.id, 'loops')
    assert.deepEqual([doubt, attempts], [true, 1])
    const second = await begun(there, failed.contact.id, 'loops')
    assert.deepEqual([second.doubt, second.attempts], [false, 1])
    const claimed = await there.claim('webhook', 10)
    assert.deepEqual(
      claimed.map(({ number, event, doubt, attempts }) => [number, event.contact.providerId, doubt, attempts]),
      [
        [2, 'of-waits@example.com', false, 0],
        [1, 'of-told@example.com', true, 1],
      ],
    )
    assert.deepEqual(told.event, claimed[1]?.event)
  })

  test('who joins after the move gets the next number, and who was listed is', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const url = await server.database()
    writeList(path, manyContacts(25))
    assert.equal((await moved(sqlite(path), postgres(url), { batch: 10 })).is, 'moved')
    const options = { eventName: 'waitlist.joined', destinations: ['webhook'] }
    const store = await postgresStore({ url, ...options, log: recordingLog().log })
    t.after(() => store.close())
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    assert.deepEqual(await store.admit(signup('Visitor', 'VISITOR-7@example.com')), { is: 'already listed' })
    const { contact, delivery } = await listOn(url)
    assert.deepEqual(
      contact.slice(-2).map(({ number }) => number),
      [25, 26],
    )
    assert.deepEqual(
      delivery.slice(-2).map(({ number }) => number),
      [25, 26],
    )
  })

  test('the microseconds of PostgreSQL are cut, never rounded up', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const url = await server.database()
    const store = await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    await server.run(url, "update contact set created_at = '2030-01-01 00:00:00.123999+00'")
    assert.equal((await moved(postgres(url), sqlite(path))).is, 'moved')
    assert.equal(listIn(path).contact[0]?.created_at, Date.UTC(2030, 0, 1, 0, 0, 0, 123))
    // And both are equal when the same is asked again.
    const second = await moved(postgres(url), sqlite(path))
    assert.deepEqual([second.is, 'copied' in second && second.copied], ['moved', 0])
  })

  test('from one PostgreSQL database to another', async () => {
    const [one, other] = [await server.database(), await server.database()]
    const store = await postgresStore({ url: one, eventName: 'waitlist.joined', log: recordingLog().log })
    await Promise.all(['ada', 'bob'].map(name => store.admit(signup(name, `${name}@example.com`))))
    await store.close()
    assert.equal((await moved(postgres(one), postgres(other))).is, 'moved')
    assert.deepEqual(await listOn(other), await listOn(one))
  })

  test('through PgBouncer in transaction mode', { skip: pgBouncerProgram === undefined && noPgBouncer }, async t => {
    const folder = temporaryFolder(t)
    const [path, back] = [join(folder, 'waitlist.db'), join(folder, 'back.db')]
    const url = await server.database()
    const bouncer = await startPgBouncer(server.port, 2)
    t.after(() => bouncer.stop())
    writeList(path, manyContacts(100))
    const through = postgres(bouncer.through(url))
    assert.equal((await moved(sqlite(path), through, { batch: 30 })).is, 'moved')
    assert.equal((await moved(through, sqlite(back), { batch: 30 })).is, 'moved')
    assert.deepEqual(listIn(back), listIn(path))
  })

  test('a file of an older release is upgraded on the way', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const url = await server.database()
    const { provider_id: _, ...row } = contactRow(1)
    writeList(path, { contact: [contactRow(1)] })
    withDatabase(path, database =>
      database.exec(`drop table delivery; drop table registration; drop index contact_id;
        alter table contact drop column provider_id; pragma user_version = 1`),
    )
    assert.equal((await moved(sqlite(path), postgres(url))).is, 'moved')
    const { contact } = await listOn(url)
    assert.deepEqual(contact, [{ ...row, provider_id: null }])
    assert.deepEqual(await query(url, 'select count(*)::int as n from delivery'), [{ n: 0 }])
  })
})

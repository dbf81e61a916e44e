import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Delivery } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { handClock, signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { noPgBouncer, pgBouncerProgram, startPgBouncer } from '../harness/pgbouncer.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { type List, listIn, listOn, manyContacts, moved, postgres, sqlite, unleased, writeList } from './move.scene.ts'

const server = await startPostgres({ settings: unsynced })
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

const whole = fc.integer({ min: 1, max: 1_000_000 })
/** No two rows share a value of these columns. */
const unique = <Row>(...columns: readonly (keyof Row)[]) => ({
  maxLength: 4,
  comparator: (one: Row, other: Row) => columns.some(column => one[column] === other[column]),
})

const person = fc.record({
  gap: fc.integer({ min: 1, max: 1_000_000 }),
  id: uuid,
  name: text,
  createdAt: time,
  source: orNull(fc.record({ utm_source: text, ref: text })),
  providerId: orNull(text),
  mailbox: orNull(text),
  // Listed with an event, listed as one whom the provider had before, pending, or held.
  is: fc.constantFrom('joined', 'known', 'pending', 'held'),
  reason: text,
  event: fc.record({ name: text, at: time }),
  deliveries: fc.uniqueArray(
    fc.record({
      destination: text,
      state: fc.constantFrom('waiting', 'delivered', 'abandoned'),
      attempts,
      doubt: bit,
      due_at: time,
      token: orNull(uuid),
      why: orNull(text),
      settled_at: orNull(time),
    }),
    { maxLength: 3, selector: ({ destination }) => destination },
  ),
})

const others = fc.record({
  erased: fc.uniqueArray(
    fc.record({ number: whole, hash: text, erased_at: time }, { noNullPrototype: true }),
    unique('number', 'hash'),
  ),
  secret: fc.uniqueArray(
    fc.record({ number: whole, name: text, value: text }, { noNullPrototype: true }),
    unique('number', 'name'),
  ),
})

const people = fc.uniqueArray(person, { maxLength: 12, selector: ({ id }) => id })

const lists = fc.tuple(people, others).map(([people, { erased, secret }]): List => {
  let number = 0
  let delivery = 0
  const all = people.map(each => {
    number += each.gap
    return { ...each, number }
  })
  return {
    contact: all.map(({ number, id, name, is, createdAt, providerId, event, source, reason, mailbox }) => ({
      number,
      id,
      name,
      email: `V${number}@Example.com`,
      email_key: `v${number}@example.com`,
      state: is === 'pending' || is === 'held' ? is : 'listed',
      created_at: createdAt,
      provider_id: providerId,
      event_name: is === 'joined' ? event.name : null,
      event_at: is === 'joined' ? event.at : null,
      source: source && JSON.stringify(source),
      reason: is === 'held' ? reason : null,
      mailbox,
    })),
    delivery: all.flatMap(({ number, deliveries }) =>
      deliveries.map(each => {
        delivery += 3
        // Only what waits is leased.
        return { number: delivery, contact: number, ...each, token: each.state === 'waiting' ? each.token : null }
      }),
    ),
    erased: erased.sort((one, other) => one.number - other.number),
    secret: secret.sort((one, other) => one.number - other.number),
  }
})

/** Signs up somebody new with a store that has a provider. */
async function pending(store: Store, email: string): Promise<Delivery> {
  const admission = await store.admit(signup('Visitor', email))
  assert.ok(admission.is === 'pending now')
  return admission.delivery
}

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
      { numRuns: isSlow ? 15 : 2, endOnFailure: true },
    )
  })

  test('what was leased is in doubt at its next claim, and nothing else is', async t => {
    const folder = temporaryFolder(t)
    const clock = handClock()
    const path = join(folder, 'waitlist.db')
    const url = await server.database()
    const options = { eventName: 'waitlist.joined', destinations: ['webhook'], provider: 'loops', clock: clock.read }
    const here = await sqliteStore({ path, ...options, minimumFree: 0 })
    await pending(here, 'asked@example.com')
    const sure = { is: 'waiting', wait: 1, doubt: false, why: 'no connection' } as const
    await here.settle(await pending(here, 'failed@example.com'), sure)
    for (const email of ['told@example.com', 'waits@example.com']) {
      await here.settle(await pending(here, email), { is: 'listed', joined: true, providerId: `of-${email}` })
    }
    const [told] = await here.claim('webhook', 1)
    assert.equal(told?.contact.email, 'told@example.com')
    await here.close()

    assert.equal((await moved(sqlite(path), postgres(url))).is, 'moved')
    clock.pass(61_000)
    const there = await postgresStore({ url, ...options, log: recordingLog().log })
    t.after(() => there.close())
    const doubts = async (destination: string) => {
      const claimed = await there.claim(destination, 10)
      return Object.fromEntries(claimed.map(each => [each.contact.email, [each.doubt, each.contact.providerId]]))
    }
    assert.deepEqual(await doubts('loops'), {
      'asked@example.com': [true, undefined],
      'failed@example.com': [false, undefined],
    })
    assert.deepEqual(await doubts('webhook'), {
      'told@example.com': [true, 'of-told@example.com'],
      'waits@example.com': [false, 'of-waits@example.com'],
    })
  })

  for (const way of ['PostgreSQL', 'a file'] as const) {
    test(`who joins after the move to ${way} gets the next number, also where the last one is gone`, async t => {
      const folder = temporaryFolder(t)
      const [path, between, copy] = ['waitlist.db', 'between.db', 'copy.db'].map(name => join(folder, name)) as [
        string,
        string,
        string,
      ]
      const url = await server.database()
      writeList(path, manyContacts(25))
      withDatabase(path, database => database.exec('delete from contact where number > 20'))
      assert.equal((await moved(sqlite(path), postgres(url), { batch: 10 })).is, 'moved')
      const options = { eventName: 'waitlist.joined', destinations: ['webhook'] }
      let store: Store
      if (way === 'PostgreSQL') store = await postgresStore({ url, ...options, log: recordingLog().log })
      else {
        // By way of both engines, each as a source.
        assert.equal((await moved(postgres(url), sqlite(between))).is, 'moved')
        assert.equal((await moved(sqlite(between), sqlite(copy))).is, 'moved')
        store = await sqliteStore({ path: copy, ...options, minimumFree: 0 })
      }
      t.after(() => store.close())
      assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
      assert.deepEqual(await store.admit(signup('Visitor', 'VISITOR-7@example.com')), { is: 'already listed' })
      const { contact, delivery } = way === 'a file' ? listIn(copy) : await listOn(url)
      for (const rows of [contact, delivery])
        assert.deepEqual(
          rows.slice(-2).map(({ number }) => number),
          [20, 26],
        )
    })
  }

  test('a list that nobody joined yet moves, too, and numbers begin with 1', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const url = await server.database()
    writeList(path, {})
    const result = await moved(sqlite(path), postgres(url))
    assert.ok(result.is === 'moved' && result.copied === 0)
    const store = await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })
    t.after(() => store.close())
    await store.admit(signup('Ada', 'ada@example.com'))
    assert.deepEqual(
      (await listOn(url)).contact.map(({ number }) => number),
      [1],
    )
  })

  test('the microseconds of PostgreSQL are cut, never rounded up, and both sides are equal all the same', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const url = await server.database()
    const store = await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    await server.run(url, "update contact set created_at = '2030-01-01 00:00:00.123999+00'")
    assert.equal((await moved(postgres(url), sqlite(path))).is, 'moved')
    assert.equal(listIn(path).contact[0]?.created_at, Date.UTC(2030, 0, 1, 0, 0, 0, 123))
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
})

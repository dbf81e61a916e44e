import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE } from '../../src/store/outbox.ts'
import type { DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { outbox, type Row } from './scene.ts'

const ALWAYS = Number.POSITIVE_INFINITY
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const delivered: DeliveryResult = { is: 'delivered' }
const unreached: DeliveryResult = { is: 'unreached', why: 'refused' }
const unclear: DeliveryResult = { is: 'unclear', why: 'no answer in time' }

const states = (rows: readonly Row[]) => rows.map(({ state }) => state)

describe('the outbox of one destination', () => {
  test('every event is told once, under the id of its contact', async t => {
    const here = await outbox(t)
    const ids: string[] = []
    for (let i = 0; i < 10; i++) {
      const admission = await here.joins()
      ids.push(`evt_${admission.is === 'listed now' ? admission.contactId : ''}`)
    }
    const loop = here.to(() => delivered)
    while ((await loop.once()) > 0);
    assert.deepEqual(here.told.map(({ id }) => id).sort(), ids.sort())
    assert.deepEqual(states(here.rows()), Array(10).fill('delivered'))
    assert.deepEqual(here.lines, [])
  })

  test('what fails while others succeed is tried again on schedule, to the tenth attempt, and is never sooner', async t => {
    const here = await outbox(t)
    await here.joins()
    const start = here.clock.now
    const [poison] = await here.store.claim('webhook', 1)
    await here.store.settle(poison!, { is: 'retry', wait: 0, doubt: false, why: 'not attempted', counts: false })
    const loop = here.to(({ contact }) => (contact.id === poison!.contact.id ? unreached : delivered))
    while (here.rows()[0]!.state === 'waiting') {
      const due = here.rows()[0]!.due_at
      here.clock.now = due - 1
      await here.joins()
      assert.equal(await loop.once(), 1, 'another one, which is delivered')
      here.clock.now = due
      assert.equal(await loop.once(), 1)
    }
    const attempts = here.told.filter(({ id }) => id === `evt_${poison!.contact.id}`)
    const minutes = attempts.map(({ at }) => Math.floor((at - start) / MINUTE))
    assert.deepEqual(minutes, [0, 0, 5, 35, 155, 455, 1_055, 1_895, 3_095, 4_535])
    const [row] = here.rows()
    assert.deepEqual([row!.state, row!.attempts], ['abandoned', 10])
    assert.match(row!.why!, /^refused; that was the last attempt/)
    assert.equal(here.lines.at(-1)!.level, 'error')
  })

  test('what is refused for good is abandoned at once, with the reason, and not a word of the person', async t => {
    const here = await outbox(t)
    await here.joins()
    await here.joins()
    const contact = here.to(() => ({ is: 'refused', why: 'answered with 422' }), { concurrency: 1 })
    assert.deepEqual([await contact.once(), await contact.once()], [1, 1], 'the next one may pass')
    assert.deepEqual(states(here.rows()), ['abandoned', 'abandoned'])
    assert.equal(here.rows()[0]!.why, 'answered with 422')
    const { level, message, details } = here.lines[0]!
    assert.deepEqual([level, message], ['error', 'a delivery was abandoned; it can be replayed'])
    const id = here.told[0]!.id.replace('evt_', '')
    assert.deepEqual(details, { destination: 'webhook', contact: id, attempt: 1, why: 'answered with 422' })
  })

  test('one that refuses everything is asked ten times a second at most, in one line for ten seconds', async t => {
    const here = await outbox(t)
    await Promise.all(Array.from({ length: 500 }, here.joins))
    let answer: DeliveryResult = { is: 'refused', why: 'answered with 422' }
    const loop = here.to(() => answer, { concurrency: 16 })
    while ((await loop.once()) > 0);
    const first = here.told.length
    assert.ok(first >= 50 && first < 80, `${first} at once`)
    await here.pass(20, loop)
    const asked = here.told.length - first
    assert.ok(asked >= 100 && asked <= 200, `${asked} in 20 seconds`)
    assert.ok(here.lines.length >= 2 && here.lines.length <= 4)

    answer = delivered
    await here.pass(2, loop)
    assert.equal(here.rows().filter(({ state }) => state === 'waiting').length, 0, 'it is mended, and all follow')
  })

  test('a receiver that is gone is told nothing more until the next start; the others are', async t => {
    const here = await outbox(t)
    for (let i = 0; i < 3; i++) await here.joins()
    const loop = here.to(() => ({ is: 'gone', why: 'answered with 410' }), { concurrency: 1 })
    assert.deepEqual([await loop.once(), await loop.once()], [1, 0])
    here.clock.now += 100 * HOUR
    assert.equal(await loop.once(), 0)
    assert.deepEqual(states(here.rows()), ['abandoned', 'waiting', 'waiting'])
    assert.equal(await here.to(() => delivered, { name: 'crm' }).once(), 3)
    assert.equal(await here.to(() => delivered).once(), 2)
  })
})

describe('a delivery whose outcome nobody knows', () => {
  for (const repeatable of [0, ALWAYS]) {
    test(`repeatable for ${repeatable} ms: whether it begins when the process stops`, async t => {
      const here = await outbox(t)
      const [asked, turn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const loop = here.to(
        async (_, mayBegin) => {
          asked.resolve()
          await turn.promise
          return mayBegin() ? delivered : { ...unreached, notSent: true }
        },
        { repeatable },
      )
      await here.joins()
      loop.start()
      await asked.promise
      const stopped = loop.stop(20_000)
      turn.resolve()
      await stopped
      assert.deepEqual(states(here.rows()), [repeatable === 0 ? 'waiting' : 'delivered'])
    })
  }

  test('one that does is told again, under the same id, as long as it does', async t => {
    const here = await outbox(t)
    await here.joins()
    const start = here.clock.now
    const loop = here.to(() => (here.told.length === 1 ? unclear : unreached), { repeatable: 10 * MINUTE })
    while (here.rows()[0]!.state === 'waiting') {
      here.clock.now = here.rows()[0]!.due_at
      await loop.once()
    }
    const last = here.told.at(-1)!.at - start
    assert.ok(here.told.length > 2 && last < 10 * MINUTE && last > 9 * MINUTE, `the last after ${last} ms`)
    assert.ok(here.clock.now - start >= 10 * MINUTE, 'it would not be recognised any more')
    const [row] = here.rows()
    assert.equal(row!.state, 'abandoned')
    assert.match(row!.why!, /an earlier attempt may have arrived/)
    assert.equal(new Set(here.told.map(({ id }) => id)).size, 1)
  })

  for (const [repeatable, again] of [
    [0, 0],
    [LEASE, 0],
    [LEASE + 1, 1],
  ] as const) {
    test(`after a crash, repeatable for ${repeatable} ms: told ${again} times more when the lease is over`, async t => {
      const here = await outbox(t)
      await here.joins()
      assert.equal((await here.store.claim('webhook', 10)).length, 1)
      const loop = here.to(() => delivered, { repeatable })
      here.clock.now += LEASE - 1
      assert.equal(await loop.once(), 0)
      here.clock.now += 1
      assert.equal(await loop.once(), 1)
      assert.equal(here.told.length, again)
      assert.deepEqual(states(here.rows()), [again === 1 ? 'delivered' : 'abandoned'])
    })
  }

  test('the clock of another machine, which is behind, makes no destination remember', async t => {
    const here = await outbox(t)
    await here.joins()
    await here.store.claim('webhook', 10)
    here.clock.now += LEASE
    await here
      .to(
        () => delivered,
        { repeatable: 0 },
        () => 0,
      )
      .once()
    assert.deepEqual([states(here.rows()), here.told], [['abandoned'], []])
  })

  test('a bug in a destination is an unclear outcome, and comes back on schedule only', async t => {
    const here = await outbox(t)
    await here.joins()
    const loop = here.to(() => Promise.reject(new TypeError('undefined is not a function')))
    await loop.once()
    const [row] = here.rows()
    assert.deepEqual([row!.state, row!.doubt, row!.due_at], ['waiting', 1, here.clock.now + 5_000])
    assert.match(row!.why!, /TypeError/)
    assert.equal(await loop.once(), 0)
  })
})

describe('an outage of a destination', () => {
  test('of a day abandons nothing and is tried each five minutes; then all is told', async t => {
    const here = await outbox(t)
    let answer: DeliveryResult = unreached
    const loop = here.to(() => answer)
    for (let i = 0; i < 5; i++) await here.joins()
    await here.pass(23 * 3_600, loop, 60)
    const before = here.told.length
    await here.pass(3_600, loop, 60)
    assert.equal(here.told.length - before, 12)
    assert.deepEqual([...new Set(here.rows().map(({ state, attempts }) => `${state} ${attempts}`))], ['waiting 0'])
    answer = delivered
    await here.pass(300 + 30, loop)
    assert.deepEqual(states(here.rows()), Array(5).fill('delivered'))
  })

  test('begins nothing that still waits for its turn, which is then told as if nothing had been', async t => {
    const here = await outbox(t)
    let isOut = true
    let turns = 0
    const five = Promise.withResolvers<void>()
    const loop = here.to(
      async (_, mayBegin) => {
        if (!isOut) return delivered
        if (++turns > 5) await five.promise
        return mayBegin() ? unclear : { ...unreached, notSent: true }
      },
      { repeatable: 0, concurrency: 8 },
    )
    for (let i = 0; i < 8; i++) await here.joins()
    const all = loop.once()
    while (states(here.rows()).filter(state => state === 'abandoned').length < 5) await new Promise(setImmediate)
    five.resolve()
    await all
    isOut = false
    await here.pass(60, loop)
    assert.deepEqual(states(here.rows()), [...Array(5).fill('abandoned'), ...Array(3).fill('delivered')])
  })
})

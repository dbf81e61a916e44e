import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deliveries } from '../../src/waitlist/deliver.ts'
import { LEASE, StoreUnavailable, type Told } from '../../src/waitlist/ports.ts'
import { outbox, type Row } from './outbox.ts'
import { keptLog } from './scene.ts'

const ALWAYS = Number.POSITIVE_INFINITY
const MINUTE = 60_000
const delivered: Told = { is: 'delivered' }
const unreached: Told = { is: 'unreached', why: 'refused' }
const unclear: Told = { is: 'unclear', why: 'no answer in time' }

const states = (rows: readonly Row[]) => rows.map(({ state }) => state)

describe('the outbox of one destination', { timeout: 60_000 }, () => {
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

  test('an event that is announced is told without a rest', async t => {
    const here = await outbox(t)
    const told = Promise.withResolvers<void>()
    const loop = here.to(() => {
      told.resolve()
      return delivered
    })
    loop.start()
    await here.joins()
    loop.wake()
    await told.promise
    await loop.stop(20_000)
    assert.deepEqual(states(here.rows()), ['delivered'])
  })

  test('what is not reached is tried again on schedule, to the tenth attempt, and is never sooner', async t => {
    const here = await outbox(t)
    await here.joins()
    const start = here.clock.now
    const loop = here.to(() => unreached)
    while (here.rows()[0]!.state === 'waiting') {
      const due = here.rows()[0]!.due_at
      if (here.told.length > 0) {
        here.clock.now = due - 1
        assert.equal(await loop.once(), 0)
      }
      here.clock.now = due
      assert.equal(await loop.once(), 1)
    }
    const minutes = here.told.map(({ at }) => Math.floor((at - start) / MINUTE))
    assert.deepEqual(minutes, [0, 0, 5, 35, 155, 455, 1_055, 1_895, 3_095, 4_535])
    const [row] = here.rows()
    assert.deepEqual([row!.state, row!.attempts], ['abandoned', 10])
    assert.match(row!.why!, /^refused; that was the last attempt/)
    assert.equal(new Set(here.told.map(({ id }) => id)).size, 1)
    assert.deepEqual(
      here.lines.map(({ level }) => level),
      [...Array(9).fill('warn'), 'error'],
    )
  })

  test('what it asks us to wait is waited, to the millisecond, even a broken one', async t => {
    const here = await outbox(t)
    await here.joins()
    await here.to(() => ({ is: 'unreached', why: '429', retryAfter: 3_600_000.25 })).once()
    assert.equal(here.rows()[0]!.due_at, here.clock.now + 3_600_001)
  })

  test('what is refused for good is given up at once, with the reason, and not a word of the person', async t => {
    const here = await outbox(t)
    await here.joins()
    await here.to(() => ({ is: 'misconfigured', why: 'answered with 401' })).once()
    assert.deepEqual([here.rows()[0]!.state, here.rows()[0]!.why], ['abandoned', 'answered with 401'])
    const { level, details } = here.lines[0]!
    assert.deepEqual(
      [level, details],
      ['error', { destination: 'webhook', event: here.told[0]!.id, attempt: 1, why: 'answered with 401' }],
    )
  })

  test('a receiver that is gone is told nothing more until the next start; the others are', async t => {
    const here = await outbox(t)
    for (let i = 0; i < 3; i++) await here.joins()
    const loop = here.to(() => ({ is: 'gone', why: 'answered with 410' }), { concurrency: 1 })
    assert.deepEqual([await loop.once(), await loop.once()], [1, 0])
    assert.deepEqual(states(here.rows()), ['abandoned', 'waiting', 'waiting'])
    assert.equal(await here.to(() => delivered, { name: 'crm' }).once(), 3)
    assert.equal(await here.to(() => delivered).once(), 2)
  })

  test('one that does not answer holds up nobody else', async t => {
    const here = await outbox(t)
    const end = Promise.withResolvers<Told>()
    const slow = here.to(() => end.promise, { name: 'crm' })
    const quick = here.to(() => delivered)
    slow.start()
    quick.start()
    for (let i = 0; i < 20; i++) await here.joins()
    quick.wake()
    while (states(here.rows()).includes('waiting')) await new Promise(resolve => setTimeout(resolve, 10))
    assert.ok(states(here.rows('crm')).every(state => state === 'waiting'))
    end.resolve(unreached)
  })
})

describe('a delivery whose outcome nobody knows', { timeout: 60_000 }, () => {
  test('a destination that recognises nothing is not told twice', async t => {
    const here = await outbox(t)
    await here.joins()
    await here.to(() => unclear, { repeatable: 0 }).once()
    assert.deepEqual(states(here.rows()), ['abandoned'])
  })

  test('one that does is told again, under the same id, as long as it does', async t => {
    const here = await outbox(t)
    await here.joins()
    const start = here.clock.now
    const loop = here.to(() => (here.told.length === 1 ? unclear : unreached), { repeatable: 10 * MINUTE })
    for (let i = 0; i < 4; i++) {
      await loop.once()
      if (here.rows()[0]!.state === 'waiting') here.clock.now = here.rows()[0]!.due_at
    }
    const minutes = here.told.map(({ at }) => Math.floor((at - start) / MINUTE))
    assert.deepEqual(minutes, [0, 0, 5], 'the one after thirty minutes would not be recognised')
    const [row] = here.rows()
    assert.equal(row!.state, 'abandoned')
    assert.match(row!.why!, /an earlier attempt may have arrived/)
    assert.equal(new Set(here.told.map(({ id }) => id)).size, 1)
  })

  for (const [repeatable, again] of [
    [0, 0],
    [LEASE, 0],
    [LEASE + 1, 1],
    [ALWAYS, 1],
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
    const destination = {
      name: 'webhook',
      repeatable: 0,
      timeout: 1_000,
      concurrency: 1,
      deliver: async () => delivered,
    }
    const { log } = keptLog()
    await deliveries({ store: here.store, destination, log, clock: () => 0 }).once()
    assert.deepEqual(states(here.rows()), ['abandoned'])
  })

  test('a bug in a destination is an unclear outcome, and comes back on schedule only', async t => {
    const here = await outbox(t)
    await here.joins()
    const loop = here.to(() => Promise.reject(new TypeError('undefined is not a function')))
    await loop.once()
    const [row] = here.rows()
    assert.deepEqual([row!.state, row!.doubt, row!.due_at], ['waiting', 1, here.clock.now + 5_000])
    assert.match(row!.why!, /TypeError/)
  })

  test('a process that slept for longer than its lease changes nothing', async t => {
    const here = await outbox(t)
    await here.joins()
    const loop = here.to(async () => {
      here.clock.now += LEASE
      await here.to(() => delivered).once()
      return { is: 'misconfigured', why: 'late' }
    })
    await loop.once()
    assert.deepEqual(states(here.rows()), ['delivered'])
  })
})

describe('an outcome that the store does not take', { timeout: 60_000 }, () => {
  test('is stored when the store is back', async t => {
    const here = await outbox(t)
    await here.joins()
    let refusals = 2
    const settle: typeof here.store.settle = (...all) =>
      refusals-- > 0 ? Promise.reject(new StoreUnavailable('full')) : here.store.settle(...all)
    await here.to(() => delivered, {}, { ...here.store, settle }).once()
    assert.deepEqual(states(here.rows()), ['delivered'])
    assert.equal(here.told.length, 1)
  })

  test('and never will, is told to the operator', async t => {
    const here = await outbox(t)
    await here.joins()
    const settle = () => Promise.reject(new Error('a bug'))
    await here.to(() => delivered, {}, { ...here.store, settle }).once()
    assert.deepEqual(
      here.lines.map(({ message }) => message),
      ['the outcome of a delivery was not stored'],
    )
  })

  test('an outbox that cannot be read is told, and read later', async t => {
    const here = await outbox(t)
    await here.joins()
    let refusals = 1
    const claim: typeof here.store.claim = (...all) =>
      refusals-- > 0 ? Promise.reject(new StoreUnavailable('busy')) : here.store.claim(...all)
    const loop = here.to(() => delivered, {}, { ...here.store, claim })
    loop.start()
    while (states(here.rows())[0] !== 'delivered') await new Promise(resolve => setTimeout(resolve, 20))
    assert.deepEqual(
      here.lines.map(({ message }) => message),
      ['the outbox does not work'],
    )
  })
})

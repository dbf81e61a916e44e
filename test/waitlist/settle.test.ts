import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { StoreUnavailable } from '../../src/store/database.ts'
import type { Delivery, Settlement } from '../../src/store/outbox.ts'
import { settling } from '../../src/waitlist/delivery/settle.ts'
import { keptLog } from './log.ts'

const contact = { id: 'c1', name: 'Ada', email: 'ada@example.com', state: 'pending', createdAt: new Date(0) } as const
const delivery: Delivery = { number: 1, token: 't', contact, kind: 'joined', attempts: 0, doubt: false }
const listed: Settlement = { is: 'listed', joined: true }

/** A store that says what the test wants, and time that passes when it is told to. */
function bench(t: TestContext, answer: () => Promise<boolean>) {
  const says = { answer }
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const offered: [Delivery, Settlement][] = []
  const { log, lines } = keptLog()
  let announced = 0
  const store = {
    settle(...outcome: [Delivery, Settlement]) {
      offered.push(outcome)
      return says.answer()
    },
  }
  return {
    ...settling({ store, destination: 'hook', log, announce: () => void announced++ }),
    /** What the store says; may be changed at any time. */
    says,
    offered,
    lines,
    announced: () => announced,
    async pass(seconds: number) {
      for (let i = 0; i < seconds; i++) {
        t.mock.timers.tick(1_000)
        await turn()
      }
    },
  }
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const full = () => Promise.reject(new StoreUnavailable('full'))
const stay = () => new AbortController().signal

/** Whether it is over at this moment. */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  let over = false
  void promise.then(() => {
    over = true
  })
  await turn()
  return over
}

describe('an outcome', () => {
  test('is stored, and its event is announced', async t => {
    const here = bench(t, async () => true)
    assert.equal(await here.settle(delivery, listed), true)
    assert.deepEqual([here.offered, here.announced()], [[[delivery, listed]], 1])
  })

  for (const [what, settlement, stored] of [
    ['without an event', { is: 'listed', joined: false }, true],
    ['of a delivery', { is: 'delivered' }, true],
    ['of a lease that was lost', listed, false],
  ] as const) {
    test(`${what} announces nothing`, async t => {
      const here = bench(t, async () => stored)
      assert.equal(await here.settle(delivery, settlement), stored)
      assert.equal(here.announced(), 0)
    })
  }

  test('that the store refused is offered again, and announced when it is stored', async t => {
    const here = bench(t, full)
    await assert.rejects(here.settle(delivery, listed), StoreUnavailable)
    await here.pass(1)
    assert.deepEqual([here.offered.length, here.announced()], [2, 0])
    here.says.answer = async () => true
    await here.pass(3)
    assert.deepEqual([here.offered.length, here.announced(), here.lines], [3, 1, []])
    assert.deepEqual(here.offered.at(-1), [delivery, listed])
  })

  test('is offered three times in ten seconds; then the operator is told, and its lease ends', async t => {
    const here = bench(t, full)
    await assert.rejects(here.settle(delivery, listed), StoreUnavailable)
    await here.pass(9)
    assert.deepEqual(here.lines, [])
    await here.pass(100)
    assert.equal(here.offered.length, 4)
    const details = { destination: 'hook', why: 'StoreUnavailable: full' }
    assert.deepEqual(here.lines, [{ level: 'error', message: 'the outcome of an attempt was not stored', details }])
  })

  test('that meets a bug on the way is not offered again', async t => {
    const here = bench(t, full)
    await assert.rejects(here.settle(delivery, listed), StoreUnavailable)
    here.says.answer = () => Promise.reject(new TypeError('not a function'))
    await here.pass(10)
    assert.deepEqual([here.offered.length, here.lines.length], [2, 1])
    await assert.rejects(here.settle(delivery, listed), TypeError)
    await here.pass(10)
    assert.equal(here.offered.length, 3)
  })
})

describe('who waits for the outcomes that the store refused', () => {
  test('waits for all of them', async t => {
    const here = bench(t, full)
    for (const number of [1, 2]) await assert.rejects(here.settle({ ...delivery, number }, listed))
    const settled = here.settled(stay())
    assert.equal(await isOver(settled), false)
    let refusals = 1
    here.says.answer = () => (refusals-- > 0 ? full() : Promise.resolve(true))
    await here.pass(1)
    assert.deepEqual([await isOver(settled), here.announced()], [false, 1])
    await here.pass(3)
    assert.deepEqual([await isOver(settled), here.announced()], [true, 2])
  })

  test('leaves when it must, and the row is left in doubt', async t => {
    const here = bench(t, full)
    await assert.rejects(here.settle(delivery, listed))
    const leaving = new AbortController()
    const settled = here.settled(leaving.signal)
    assert.equal(await isOver(settled), false)
    leaving.abort()
    assert.equal(await isOver(settled), true)
    assert.equal(await isOver(here.settled(AbortSignal.abort())), true)
  })
})

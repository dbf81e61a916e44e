import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { limiterContract } from '../contracts/limiter.ts'
import { isSlow } from '../harness/slow.ts'

limiterContract('memory', async (t, quota) => {
  const limiter = memoryLimiter(quota)
  t.after(() => limiter.close())
  return limiter
})

const numRuns = isSlow ? 300 : 100
const window = fc.integer({ min: 1, max: 3_600 })

/** A limiter whose clock the test sets, in milliseconds, and in which moments who was admitted. */
function scene(quota: { limit: number; window: number }) {
  const clock = { now: 0 }
  const limiter = memoryLimiter({ ...quota, now: () => clock.now })
  const admittedAt = new Map<string, number[]>()
  async function take(client: string) {
    const decision = await limiter.take(client)
    if (decision.admitted) admittedAt.set(client, [...(admittedAt.get(client) ?? []), clock.now])
    return decision
  }
  async function exhaust(client: string) {
    for (let admitted = 0; ; admitted++) {
      const refusal = await take(client)
      if (!refusal.admitted) return { admitted, refusal }
    }
  }
  return { clock, take, exhaust, admittedAt, interval: (quota.window * 1_000) / quota.limit }
}

describe('the limiter in memory, on a clock that can be set', () => {
  /** What the clients have done: by turns, some of them more often than others. */
  const pasts = fc.record({
    quota: fc.record({ limit: fc.integer({ min: 1, max: 5 }), window }),
    start: fc.integer({ min: 0, max: 1e9 }),
    steps: fc.array(
      fc.record({
        pause: fc.double({ min: 0, max: 2, noNaN: true }),
        clients: fc.integer({ min: 0, max: 40 }),
        times: fc.integer({ min: 1, max: 6 }),
      }),
      { maxLength: 12 },
    ),
    // One who has tried before, or somebody new.
    last: fc.integer({ min: 0, max: 60 }),
  })

  test('what is said is true, and in no stretch of time are more attempts admitted than the quota and one per interval', () =>
    fc.assert(
      fc.asyncProperty(pasts, async ({ quota, start, steps, last }) => {
        const { clock, take, exhaust, admittedAt, interval } = scene(quota)
        clock.now = start
        for (const { pause, clients, times } of steps) {
          clock.now += Math.round(pause * interval)
          for (let i = 0; i < clients; i++) for (let n = 0; n < times; n++) await take(`${i}`)
        }
        const client = `${last}`
        const { remaining } = await take(client)
        const { admitted, refusal } = await exhaust(client)
        assert.equal(admitted, remaining)
        assert.ok(Number.isInteger(refusal.seconds) && refusal.seconds >= 1)
        const refusedAt = clock.now
        if (refusal.seconds > 1) {
          clock.now = refusedAt + (refusal.seconds - 1) * 1_000
          assert.equal((await take(client)).admitted, false)
        }
        clock.now = refusedAt + refusal.seconds * 1_000
        const next = await take(client)
        assert.equal(next.admitted, true)
        clock.now += next.seconds * 1_000
        assert.ok((await exhaust(client)).admitted >= next.remaining + 1)

        for (const [who, times] of admittedAt) {
          for (const [first, from] of times.entries()) {
            const within = times
              .slice(first)
              .findLastIndex((to, more) => more + 1 > quota.limit + Math.floor((to - from) / interval + 1e-6))
            assert.equal(within, -1, `too many for ${who} since ${from}`)
          }
        }
      }),
      { numRuns: 2 * numRuns },
    ))

  test('a used-up quota comes back one by one, never beyond `limit`, however long the clock stands or jumps', () =>
    fc.assert(
      fc.asyncProperty(fc.record({ limit: fc.integer({ min: 1, max: 40 }), window }), async quota => {
        const { clock, exhaust, interval } = scene(quota)
        assert.equal((await exhaust('ada')).admitted, quota.limit)
        assert.equal((await exhaust('ada')).admitted, 0)
        for (let i = 0; i < 4; i++) {
          clock.now += interval / 2
          assert.equal((await exhaust('ada')).admitted, 0)
          clock.now += interval / 2 + 0.05
          assert.equal((await exhaust('ada')).admitted, 1)
        }
        for (const intervals of [2, 3, quota.limit, quota.limit + 5, 1e3 * quota.limit]) {
          clock.now += interval * intervals + 0.05
          assert.equal((await exhaust('ada')).admitted, Math.min(intervals, quota.limit))
        }
      }),
      { numRuns },
    ))
})

describe('the bounded table of the limiter in memory', () => {
  test('at most `clients` keys are remembered: of a spray the oldest have their quota back', async () => {
    const limiter = memoryLimiter({ limit: 1, window: 600, clients: 1_000, now: () => 0 })
    for (let i = 0; i < 5_000; i++) await limiter.take(`sprayed ${i}`)
    let remembered = 0
    // From the newest: looking never makes a remembered one be forgotten, as it is put at the end.
    for (let i = 4_999; i >= 0; i--) if (!(await limiter.take(`sprayed ${i}`)).admitted) remembered++
    assert.ok(remembered >= 900, 'only the oldest tenth may be forgotten')
    assert.ok(remembered <= 1_000)
  })

  test('a blocked client that keeps trying stays blocked through any spray', async () => {
    const clients = 1_000
    const limiter = memoryLimiter({ limit: 2, window: 600, clients, now: () => 0 })
    for (let i = 0; i < 2; i++) assert.equal((await limiter.take('blocked')).admitted, true)
    for (let i = 0; i < 200_000; i++) {
      await limiter.take(`sprayed ${i}`)
      if (i % (clients / 2 - 1) === 0) assert.equal((await limiter.take('blocked')).admitted, false, `after ${i}`)
    }
  })
})

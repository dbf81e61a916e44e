import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { memoryLimiter } from '../../src/rate-limit/memory.ts'
import type { RateDecision } from '../../src/waitlist/ports/limiter.ts'

/** A bucket for each client: an attempt takes a token out, and one comes back each `interval`, in microseconds. */
function buckets(limit: number, interval: number) {
  const levels = new Map<string, { level: number; at: number }>()
  return (client: string, at: number): RateDecision => {
    const before = levels.get(client) ?? { level: limit * interval, at }
    const full = Math.min(limit * interval, before.level + at - before.at)
    const admitted = full >= interval
    const level = admitted ? full - interval : full
    levels.set(client, { level, at })
    const untilNext = interval - (level % interval)
    return { admitted, remaining: Math.floor(level / interval), seconds: Math.max(1, Math.ceil(untilNext / 1e6)) }
  }
}

describe('the limiter in memory', () => {
  const names = ['192.0.2.1', '192.0.2.10', '2001:db8::/56', '__proto__', 'constructor']
  /** A pause in intervals, and how often a client then tries. */
  const pause = fc.oneof(fc.double({ min: 0, max: 2, noNaN: true }), fc.nat(50))
  const steps = fc.array(fc.tuple(pause, fc.constantFrom(...names), fc.integer({ min: 1, max: 8 })), { maxLength: 30 })
  const quotas = fc.record({ limit: fc.integer({ min: 1, max: 7 }), window: fc.integer({ min: 1, max: 3_600 }) })

  test('each answer is that of a bucket of tokens, and to wait as long as a refusal says is enough', () =>
    fc.assert(
      fc.asyncProperty(quotas, steps, async ({ limit, window }, all) => {
        const clock = { now: 0 }
        const limiter = memoryLimiter({ limit, window, now: () => clock.now })
        const model = buckets(limit, Math.ceil((window * 1e6) / limit))
        for (const [pause, client, times] of all) {
          clock.now += Math.round((pause * window * 1_000) / limit)
          let last: RateDecision | undefined
          for (let i = 0; i < times; i++) {
            last = await limiter.take(client)
            assert.deepEqual(last, model(client, clock.now * 1_000))
          }
          if (last?.admitted !== false) continue
          clock.now += last.seconds * 1_000
          assert.equal((await limiter.take(client)).admitted, true)
          assert.equal(model(client, clock.now * 1_000).admitted, true)
        }
      }),
    ))

  test('at most `clients` keys are remembered, the newest; one that keeps trying stays blocked through any spray', async () => {
    const clients = 1_000
    const limiter = memoryLimiter({ limit: 1, window: 600, clients, now: () => 0 })
    assert.equal((await limiter.take('blocked')).admitted, true)
    for (let i = 0; i < 100_000; i++) {
      await limiter.take(`sprayed ${i}`)
      if (i % (clients / 2 - 1) === 0) assert.equal((await limiter.take('blocked')).admitted, false, `after ${i}`)
    }
    let remembered = 0
    // From the newest: looking never makes a remembered one be forgotten, as it is put at the end.
    for (let i = 99_999; i >= 0; i--) if (!(await limiter.take(`sprayed ${i}`)).admitted) remembered++
    assert.ok(remembered >= 899 && remembered <= 1_000, 'only the oldest tenth may be forgotten')
  })
})

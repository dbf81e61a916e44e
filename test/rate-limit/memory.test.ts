import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CLIENTS, memoryLimiter, type RateDecision } from '../../src/rate-limit/memory.ts'

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

test('each answer is that of a bucket of tokens, and to wait as long as a refusal says is enough', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const names = ['192.0.2.1', '192.0.2.10', '2001:db8::/56', '__proto__', 'constructor']
  /** A pause in intervals, and how often a client then tries. */
  const pause = fc.oneof(fc.double({ min: 0, max: 2, noNaN: true }), fc.nat(50))
  const steps = fc.array(fc.tuple(pause, fc.constantFrom(...names), fc.integer({ min: 1, max: 8 })), { maxLength: 30 })
  const quotas = fc.record({ limit: fc.integer({ min: 1, max: 7 }), window: fc.integer({ min: 1, max: 3_600 }) })
  await fc.assert(
    fc.asyncProperty(quotas, steps, async ({ limit, window }, all) => {
      const limiter = memoryLimiter({ limit, window })
      const model = buckets(limit, Math.ceil((window * 1e6) / limit))
      for (const [pause, client, times] of all) {
        t.mock.timers.tick(Math.round((pause * window * 1_000) / limit))
        let last: RateDecision | undefined
        for (let i = 0; i < times; i++) {
          last = await limiter.take(client)
          assert.deepEqual(last, model(client, Date.now() * 1_000))
        }
        if (last?.admitted !== false) continue
        t.mock.timers.tick(last.seconds * 1_000)
        assert.equal((await limiter.take(client)).admitted, true)
        assert.equal(model(client, Date.now() * 1_000).admitted, true)
      }
    }),
  )
})

test('a clock that is set back locks nobody out for longer than a window', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-21T12:00:00Z') })
  const { take } = memoryLimiter({ limit: 2, window: 60 })
  for (let i = 0; i < 3; i++) await take('a')
  t.mock.timers.setTime(Date.parse('2026-11-20T12:00:00Z'))
  assert.deepEqual(await take('a'), { admitted: false, remaining: 0, seconds: 30 })
})

test('a flood of addresses forgets the oldest, and not one that keeps trying', async () => {
  const { take } = memoryLimiter({ limit: 1, window: 600 })
  await take('blocked')
  await take('forgotten')
  for (let i = 0; i < CLIENTS; i++) {
    await take(`flood ${i}`)
    if (i % (CLIENTS / 2) === 0) assert.equal((await take('blocked')).admitted, false)
  }
  assert.equal((await take(`flood ${CLIENTS - 1}`)).admitted, false)
  assert.equal((await take('forgotten')).admitted, true)
})

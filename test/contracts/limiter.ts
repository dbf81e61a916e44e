import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Limiter, RateDecision } from '../../src/waitlist/ports/limiter.ts'

export interface Quota {
  readonly limit: number
  readonly window: number
}

/** Makes an empty limiter. The adapter's test cleans up after the test. */
export type OpenLimiter = (test: TestContext, quota: Quota) => Promise<Limiter>

/**
 * The promises of `Limiter` (waitlist/ports/limiter.ts) that need many at once or the real clock. All others are properties
 * of the one in memory (limiters/memory.test.ts), whose answers every other one must give.
 */
export function limiterContract(name: string, open: OpenLimiter): void {
  describe(`the limiter contract, kept by ${name}`, { concurrency: true }, () => {
    test('of a crowd of attempts at the same moment exactly `limit` are admitted; what remains counts down to 0', async t => {
      const limiter = await open(t, { limit: 20, window: 600 })
      const attempts = await Promise.all(Array.from({ length: 300 }, () => limiter.take('192.0.2.1')))
      const admitted = attempts.filter(({ admitted }) => admitted).map(({ remaining }) => remaining)
      assert.deepEqual(
        admitted.sort((a, b) => b - a),
        Array.from({ length: 20 }, (_, i) => 19 - i),
      )
    })

    test('clients do not count for each other, whatever their keys look like', async t => {
      const limiter = await open(t, { limit: 1, window: 600 })
      const keys = [
        '192.0.2.1',
        '192.0.2.10',
        '2001:db8::/64',
        '2001:db8:0:1::/64',
        '__proto__',
        'constructor',
        ':',
        '*',
      ]
      for (const admitted of [true, false]) {
        for (const key of keys) assert.equal((await limiter.take(key)).admitted, admitted, key)
      }
    })

    test('waiting as long as the refusal says is enough, on the real clock', async t => {
      const limiter = await open(t, { limit: 3, window: 3 })
      for (let number = 1; ; number++) {
        const client = `192.0.2.${number}`
        const began = performance.now()
        const attempts: RateDecision[] = []
        for (let i = 0; i < 4; i++) attempts.push(await limiter.take(client))
        // What took longer proves nothing, and is done again for somebody else.
        if (performance.now() - began >= 1_000) continue
        assert.deepEqual(attempts[3], { admitted: false, remaining: 0, seconds: 1 })
        const until = performance.now() + 1_000
        while (performance.now() < until) await new Promise(resolve => setTimeout(resolve, until - performance.now()))
        assert.equal((await limiter.take(client)).admitted, true)
        break
      }
    })
  })
}

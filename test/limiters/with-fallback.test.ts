import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { withFallback } from '../../src/limiters/with-fallback.ts'
import { telemetry } from '../../src/telemetry/telemetry.ts'
import type { Limiter } from '../../src/waitlist/ports/limiter.ts'
import { recordingLog } from '../harness/service.ts'

const AWAY = 'the shared rate limit is away: each instance counts by itself'
const BACK = 'the shared rate limit is used again'

/** A limiter with a fallback, on a clock of the test's own; what is shared answers only when it is told to. */
function scene() {
  const clock = { now: 0 }
  const { log, logged } = recordingLog()
  const asked: { answer(): void; fail(why?: string): void }[] = []
  const quota = { limit: 3, window: 600, now: () => clock.now }
  const shared: Limiter = {
    take: () =>
      new Promise((resolve, reject) =>
        asked.push({
          answer: () => resolve({ admitted: true, remaining: 99, seconds: 1 }),
          fail: (why = 'it is away') => reject(new Error(why)),
        }),
      ),
    close: async () => {},
  }
  const numbers = telemetry()
  const limiter = withFallback(shared, memoryLimiter(quota), log, quota.now, numbers)
  const lines = () => logged.splice(0).map(({ msg, why, failed }) => ({ msg, why, failed }))

  /** One attempt, at `at` milliseconds, and by whom it was counted. */
  async function take(at: number, shared: 'answers' | 'fails') {
    clock.now = at
    const before = asked.length
    const attempt = limiter.take('192.0.2.1')
    if (asked.length > before) asked.at(-1)![shared === 'answers' ? 'answer' : 'fail']()
    return (await attempt).remaining === 99 ? 'shared' : 'local'
  }
  return { clock, limiter, asked, lines, take, numbers }
}

describe('the limiter with a fallback', () => {
  test('the local one answers while the shared one is away, and the shared one as soon as it is back', async () => {
    const { take, lines, numbers } = scene()
    assert.equal(await take(10_000, 'answers'), 'shared')
    assert.equal(await take(10_001, 'fails'), 'local')
    assert.equal(numbers.limiter.failures, 1)
    assert.equal(await take(10_500, 'answers'), 'local', 'it is spared')
    assert.equal(await take(11_001, 'answers'), 'shared')
    assert.equal(await take(11_002, 'answers'), 'shared')
    assert.deepEqual(lines(), [
      { msg: AWAY, why: 'it is away', failed: 1 },
      { msg: BACK, why: undefined, failed: 0 },
    ])
  })

  test('while it is away one attempt in a second waits for it, however many there are', async () => {
    const { limiter, asked, take, clock } = scene()
    await take(10_000, 'fails')
    for (let second = 1; second <= 5; second++) {
      const before = asked.length
      clock.now = 10_000 + second * 1_000
      const crowd = Array.from({ length: 200 }, (_, i) => limiter.take(`client ${i}`))
      assert.equal(asked.length - before, 1)
      // All but that one are answered though it is still waiting.
      await Promise.all(crowd.slice(1))
      asked.at(-1)!.fail()
      await crowd[0]
    }
  })

  test('one that fails on and off is told once a minute, with the number of failures, and ends with the truth', async () => {
    const { take, lines } = scene()
    for (let second = 0; second < 180; second++) await take(10_000 + second * 1_100, second % 2 ? 'answers' : 'fails')
    assert.deepEqual(lines(), [
      { msg: AWAY, why: 'it is away', failed: 1 },
      { msg: BACK, why: undefined, failed: 0 },
      { msg: AWAY, why: 'it is away', failed: 28 },
      { msg: BACK, why: undefined, failed: 0 },
      { msg: AWAY, why: 'it is away', failed: 28 },
      { msg: BACK, why: undefined, failed: 0 },
      { msg: AWAY, why: 'it is away', failed: 28 },
      { msg: BACK, why: undefined, failed: 0 },
    ])
  })

  test('that it is still connecting at the start is no outage, unless it lasts', async () => {
    for (const lasts of [false, true]) {
      const { take, lines } = scene()
      assert.equal(await take(0, 'fails'), 'local')
      assert.equal(await take(1_500, lasts ? 'fails' : 'answers'), lasts ? 'local' : 'shared')
      assert.deepEqual(lines(), [])
      await take(2_500, lasts ? 'fails' : 'answers')
      assert.deepEqual(lines(), lasts ? [{ msg: AWAY, why: 'it is away', failed: 3 }] : [])
    }
  })
})

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Limiter, RateDecision } from '../../src/waitlist/ports/limiter.ts'
import { isSlow } from '../harness/slow.ts'

export interface Quota {
  readonly limit: number
  readonly window: number
}

/** Makes an empty limiter. The adapter's test cleans up after the test. */
export type OpenLimiter = (test: TestContext, quota: Quota) => Promise<Limiter>

const takeMany = async (limiter: Limiter, client: string, times: number): Promise<RateDecision[]> => {
  const attempts: RateDecision[] = []
  for (let i = 0; i < times; i++) attempts.push(await limiter.take(client))
  return attempts
}

/** The promises of `Limiter` (waitlist/ports/limiter.ts) that hold on any clock, also one that nobody can set. */
export function limiterContract(name: string, open: OpenLimiter): void {
  describe(`the limiter contract, kept by ${name}`, { concurrency: true }, () => {
    test('a client may make exactly `limit` attempts at once; what remains counts down to 0', async t => {
      const limiter = await open(t, { limit: 5, window: 600 })
      const attempts = await takeMany(limiter, '192.0.2.1', 8)
      assert.deepEqual(
        attempts.map(({ admitted }) => admitted),
        [true, true, true, true, true, false, false, false],
      )
      assert.deepEqual(
        attempts.map(({ remaining }) => remaining),
        [4, 3, 2, 1, 0, 0, 0, 0],
      )
      // One attempt comes back every 120 seconds; hardly any of them has passed.
      for (const { seconds } of attempts) assert.ok(seconds > 110 && seconds <= 120)
    })

    test('of a crowd of attempts at the same moment exactly `limit` are admitted', async t => {
      const limiter = await open(t, { limit: 20, window: 600 })
      const attempts = await Promise.all(Array.from({ length: 300 }, () => limiter.take('192.0.2.1')))
      assert.equal(attempts.filter(({ admitted }) => admitted).length, 20)
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
      for (const key of keys) assert.equal((await limiter.take(key)).admitted, true, key)
      for (const key of keys) assert.equal((await limiter.take(key)).admitted, false, key)
    })

    test('all clients of one network share 16 quotas, and nobody else does', async t => {
      const limiter = await open(t, { limit: 3, window: 600 })
      const attempts: RateDecision[] = []
      for (let i = 0; i < 20; i++) {
        for (let n = 0; n < 4; n++) attempts.push(await limiter.take(`2001:db8:0:${i}::/64`, '2001:db8::/48'))
      }
      const three = [true, true, true, false]
      assert.deepEqual(
        attempts.map(({ admitted }) => admitted),
        [...Array.from({ length: 16 }, () => three).flat(), ...Array.from({ length: 16 }, () => false)],
      )
      const remaining = attempts.map(({ remaining }) => remaining)
      assert.deepEqual(remaining.slice(0, 60), Array.from({ length: 15 }, () => [2, 1, 0, 0]).flat())
      assert.deepEqual(remaining.slice(60), [2, 1, ...Array.from({ length: 18 }, () => 0)])
      // A client gets one back every 200 seconds, the network every 12.5.
      for (const { seconds } of attempts.slice(0, 60)) assert.ok(seconds > 180 && seconds <= 200)
      for (const { seconds } of attempts.slice(64)) assert.ok(seconds > 1 && seconds <= 13)

      for (const [client, network] of [['2001:db8:1:1::/64', '2001:db8:1::/48'], ['192.0.2.1']] as const) {
        assert.equal((await limiter.take(client, network)).remaining, 2, client)
      }
    })

    test('of a crowd in one network exactly 16 quotas are admitted', async t => {
      const limiter = await open(t, { limit: 2, window: 600 })
      const attempts = await Promise.all(Array.from({ length: 300 }, (_, i) => limiter.take(`${i % 30}`, 'network')))
      assert.equal(attempts.filter(({ admitted }) => admitted).length, 32)
    })

    test('a client that is refused costs its network nothing', async t => {
      const limiter = await open(t, { limit: 1, window: 600 })
      for (let i = 0; i < 50; i++) assert.equal((await limiter.take('eager', 'network')).admitted, i === 0)
      const others = await Promise.all(Array.from({ length: 20 }, (_, i) => limiter.take(`${i}`, 'network')))
      assert.equal(others.filter(({ admitted }) => admitted).length, 15)
    })

    test('the numbers fit their fields: whole, never negative, at least one second', async t => {
      for (const quota of [
        { limit: 1_000_000, window: 1 },
        { limit: 1, window: 86_400 },
        { limit: 7, window: 3 },
      ]) {
        const limiter = await open(t, quota)
        for (const { remaining, seconds } of await takeMany(limiter, '192.0.2.1', 10)) {
          assert.ok(Number.isInteger(remaining) && remaining >= 0 && remaining < quota.limit)
          assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= quota.window)
        }
      }
    })

    test('waiting as long as the refusal says is enough, on the real clock', async t => {
      const limiter = await open(t, { limit: 3, window: 3 })
      const client = await fresh(1_000, async client => {
        const refused = (await takeMany(limiter, client, 4))[3]!
        return () => {
          assert.deepEqual(refused, { admitted: false, remaining: 0, seconds: 1 })
          return client
        }
      })
      await pass(1)
      assert.equal((await limiter.take(client)).admitted, true)
    })
  })
}

/** Seconds, and not a moment less. */
async function pass(seconds: number): Promise<void> {
  const until = performance.now() + seconds * 1_000
  while (performance.now() < until) await new Promise(resolve => setTimeout(resolve, until - performance.now()))
}

/**
 * Uses up a quota of which something comes back after so many milliseconds. What took longer proves nothing, and is done
 * again for somebody else.
 */
async function fresh<T>(comesBack: number, use: (who: string) => Promise<() => T>): Promise<T> {
  for (let number = 1; ; number++) {
    const began = performance.now()
    const look = await use(`192.0.2.${number}`)
    if (performance.now() - began < comesBack) return look()
  }
}

/** A limiter whose clock the test sets, in milliseconds. */
export type OpenClockedLimiter = (quota: Quota, now: () => number) => Limiter

const quotas = fc.record({ limit: fc.integer({ min: 1, max: 40 }), window: fc.integer({ min: 1, max: 3_600 }) })

/** A quota, a limiter, and a past in which one client has used it in some way. */
const pasts = fc.record({
  quota: quotas,
  start: fc.double({ min: 0, max: 1e9, noNaN: true }),
  steps: fc.array(
    fc.record({ pause: fc.double({ min: 0, max: 2, noNaN: true }), times: fc.integer({ min: 0, max: 50 }) }),
    { maxLength: 12 },
  ),
})

/** The promises that need a clock which can be set. */
export function limiterClockContract(name: string, open: OpenClockedLimiter): void {
  const client = '192.0.2.1'

  /** Lives through a past; pauses are in intervals. Also tells when attempts were admitted. */
  async function after({ quota, start, steps }: typeof pasts extends fc.Arbitrary<infer T> ? T : never) {
    const clock = { now: start }
    const limiter = open(quota, () => clock.now)
    const interval = (quota.window * 1_000) / quota.limit
    const admittedAt: number[] = []
    for (const { pause, times } of steps) {
      clock.now += pause * interval
      for (const { admitted } of await takeMany(limiter, client, times)) if (admitted) admittedAt.push(clock.now)
    }
    return { clock, limiter, interval, admittedAt, ...quota }
  }
  const exhaust = async (limiter: Limiter): Promise<{ admitted: number; refusal: RateDecision }> => {
    for (let admitted = 0; ; admitted++) {
      const attempt = await limiter.take(client)
      if (!attempt.admitted) return { admitted, refusal: attempt }
    }
  }
  const property = (sentence: string, predicate: (past: Awaited<ReturnType<typeof after>>) => Promise<void>) =>
    test(sentence, () =>
      fc.assert(
        fc.asyncProperty(pasts, async past => predicate(await after(past))),
        { numRuns: isSlow ? 300 : 100 },
      ),
    )

  describe(`the limiter contract on a clock that can be set, kept by ${name}`, () => {
    property('in no stretch of time are more attempts admitted than `limit` and one per interval', async past => {
      const { admittedAt, limit, interval } = past
      for (const [first, from] of admittedAt.entries()) {
        for (const [last, to] of admittedAt.entries()) {
          if (last < first) continue
          const allowed = limit + Math.floor((to - from) / interval + 1e-6)
          assert.ok(last - first + 1 <= allowed, `${last - first + 1} in ${to - from} ms, allowed are ${allowed}`)
        }
      }
    })

    property('after a refusal, waiting exactly `seconds` succeeds, and a second less does not', async past => {
      const { limiter, clock } = past
      const { seconds } = (await exhaust(limiter)).refusal
      const refusedAt = clock.now
      if (seconds > 1) {
        clock.now = refusedAt + (seconds - 1) * 1_000
        assert.equal((await limiter.take(client)).admitted, false)
      }
      clock.now = refusedAt + seconds * 1_000
      assert.equal((await limiter.take(client)).admitted, true)
    })

    property('a used-up quota comes back one by one, never beyond `limit`', async past => {
      const { limiter, clock, interval, limit } = past
      clock.now += interval * limit * 3
      assert.equal((await exhaust(limiter)).admitted, limit)
      for (let i = 0; i < 4; i++) {
        clock.now += interval / 2
        assert.equal((await exhaust(limiter)).admitted, 0)
        clock.now += interval / 2 + 0.01
        assert.equal((await exhaust(limiter)).admitted, 1)
      }
      for (const intervals of [2, 3, limit, limit + 5]) {
        clock.now += interval * intervals + 0.01
        assert.equal((await exhaust(limiter)).admitted, Math.min(intervals, limit))
      }
    })

    /** A quota, and what the many clients of a network have done: by turns, some of them more often than others. */
    const crowds = fc.record({
      quota: fc.record({ limit: fc.integer({ min: 1, max: 5 }), window: fc.integer({ min: 1, max: 3_600 }) }),
      start: fc.double({ min: 0, max: 1e9, noNaN: true }),
      steps: fc.array(
        fc.record({
          pause: fc.double({ min: 0, max: 0.5, noNaN: true }),
          clients: fc.integer({ min: 0, max: 40 }),
          times: fc.integer({ min: 1, max: 6 }),
        }),
        { maxLength: 12 },
      ),
    })

    test('in a network too, what is said is true, and in no stretch of time are more attempts admitted', () =>
      fc.assert(
        fc.asyncProperty(crowds, fc.integer({ min: 0, max: 60 }), async ({ quota, start, steps }, last) => {
          const clock = { now: start }
          const limiter = open(quota, () => clock.now)
          const one = (quota.window * 1_000) / quota.limit
          const admittedAt = new Map<string, number[]>([['all', []]])
          const take = async (client: string) => {
            const attempt = await limiter.take(client, 'network')
            if (!attempt.admitted) return attempt
            admittedAt.get('all')!.push(clock.now)
            admittedAt.set(client, [...(admittedAt.get(client) ?? []), clock.now])
            return attempt
          }
          const exhaust = async (client: string) => {
            for (let admitted = 0; ; admitted++) {
              const attempt = await take(client)
              if (!attempt.admitted) return { admitted, refusal: attempt }
            }
          }
          for (const { pause, clients, times } of steps) {
            clock.now += pause * one
            for (let i = 0; i < clients; i++) for (let n = 0; n < times; n++) await take(`${i}`)
          }

          // A client that has tried before, or a new one.
          const client = `${last}`
          const { remaining } = await take(client)
          const { admitted, refusal } = await exhaust(client)
          assert.equal(admitted, remaining)
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

          for (const [client, times] of admittedAt) {
            const [limit, interval] = client === 'all' ? [quota.limit * 16, one / 16] : [quota.limit, one]
            for (const [first, from] of times.entries()) {
              const within = times
                .slice(first)
                .findLastIndex((to, more) => more + 1 > limit + Math.floor((to - from) / interval + 1e-6))
              assert.equal(within, -1, `too many for ${client} since ${from}`)
            }
          }
        }),
        { numRuns: isSlow ? 300 : 100 },
      ))

    test('who needs both quotas waits for the later one', async () => {
      const clock = { now: 0 }
      const limiter = open({ limit: 1, window: 960 }, () => clock.now)
      await limiter.take(client, 'network')
      clock.now = 950_000
      for (let i = 0; i < 16; i++) await limiter.take(`${i}`, 'network')
      clock.now = 955_000
      // Its own quota is back in 5 seconds, the first attempt of the network 60 seconds after the crowd.
      assert.deepEqual(await limiter.take(client, 'network'), { admitted: false, remaining: 0, seconds: 55 })
      clock.now = 1_010_000
      assert.deepEqual(await limiter.take(client, 'network'), { admitted: true, remaining: 0, seconds: 960 })
    })

    test('a clock that stands still for ever and one that jumps far ahead do no harm', async () => {
      const clock = { now: 0 }
      const limiter = open({ limit: 3, window: 60 }, () => clock.now)
      assert.equal((await exhaust(limiter)).admitted, 3)
      clock.now = 1e13
      assert.equal((await exhaust(limiter)).admitted, 3)
      assert.equal((await exhaust(limiter)).admitted, 0)
    })
  })
}

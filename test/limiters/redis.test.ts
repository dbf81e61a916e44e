import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import type { Quota } from '../../src/limiters/memory.ts'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { redisLimiter } from '../../src/limiters/redis.ts'
import { readRedisUrl } from '../../src/limiters/redis-url.ts'
import { limiterContract } from '../contracts/limiter.ts'
import { until } from '../harness/program.ts'
import { noRedis, redisProgram, startRedis } from '../harness/redis.ts'
import { answers, connectedLimiter } from './connected.ts'

const skip = redisProgram === undefined ? noRedis : false
const client = '192.0.2.1'
const key = `waitlist:limit:${client}`

describe('Redis or Valkey', { skip, timeout: 120_000 }, async () => {
  if (skip !== false) return
  const server = await startRedis(['--databases', '100'])
  after(() => server.remove())
  let databases = 0

  /** In a database of its own, so that the tests do not count for each other. */
  async function opened(t: TestContext, quota: Quota) {
    const db = databases++
    const url = `${server.url}/${db}`
    const redis = new Redis(url)
    t.after(() => redis.disconnect())
    const command = (name: string, ...values: (string | number)[]) => redis.call(name, values)
    return { url, command, limiter: await connectedLimiter(t, { ...quota, url }) }
  }

  limiterContract('Redis or Valkey', async (t, quota) => (await opened(t, quota)).limiter)

  test('a hanging server is waited for 50 ms where nothing else is said', async t => {
    const own = await startRedis()
    t.after(() => own.remove())
    const limiter = redisLimiter({ location: readRedisUrl(own.url)!, limit: 3, window: 600 })
    t.after(() => limiter.close())
    await until(() => answers(limiter))
    own.pause()
    await assert.rejects(limiter.take('somebody'), { message: 'no answer within 50 ms' })
  })

  test('a server that forgot the script counts each attempt once all the same', async t => {
    const { limiter } = await opened(t, { limit: 1_000, window: 600 })
    assert.equal((await limiter.take(client)).remaining, 999)
    await server.command('script', 'flush')
    assert.equal((await limiter.take(client)).remaining, 998)
    await server.command('script', 'flush')
    const crowd = await Promise.all(Array.from({ length: 50 }, () => limiter.take(client)))
    assert.ok(crowd.every(({ admitted }) => admitted))
    assert.equal((await limiter.take(client)).remaining, 947)
  })

  test('several instances count together: of 500 attempts at once exactly the quota is admitted', async t => {
    const quota = { limit: 37, window: 600 }
    const { url, limiter } = await opened(t, quota)
    const others = await Promise.all(Array.from({ length: 4 }, () => connectedLimiter(t, { ...quota, url })))
    const instances = [limiter, ...others]
    const attempts = await Promise.all(Array.from({ length: 500 }, (_, i) => instances[i % 5]!.take(client)))
    assert.equal(attempts.filter(({ admitted }) => admitted).length, 37)
    const remaining = attempts.filter(({ admitted }) => admitted).map(attempt => attempt.remaining)
    assert.deepEqual(
      remaining.sort((a, b) => a - b),
      Array.from({ length: 37 }, (_, i) => i),
    )
  })

  test('every answer is that of the limiter in memory, whatever came before', async t => {
    const step = fc.record({ pause: fc.integer({ min: 0, max: 12 }), times: fc.integer({ min: 0, max: 6 }) })
    // An interval is at least 30 seconds, so that it makes no difference how long the test takes.
    const quotas = [
      { limit: 1, window: 60 },
      { limit: 3, window: 7_200 },
      { limit: 7, window: 3_600 },
      { limit: 20, window: 600 },
      { limit: 37, window: 86_400 },
    ]
    const limiters = await Promise.all(quotas.map(quota => opened(t, quota)))
    const which = fc.integer({ min: 0, max: quotas.length - 1 })
    let run = 0
    await fc.assert(
      fc.asyncProperty(which, fc.array(step, { maxLength: 10 }), async (which, steps) => {
        const [quota, { limiter, command }] = [quotas[which]!, limiters[which]!]
        const someone = `client ${run++}`
        const clock = { now: 0 }
        const memory = memoryLimiter({ ...quota, now: () => clock.now })
        for (const { pause, times } of steps) {
          // Time passes for the server too when what it knows is moved back: by quarters of an interval.
          const ms = Math.ceil((pause * quota.window * 1_000) / quota.limit / 4)
          clock.now += ms
          const moved = `waitlist:limit:${someone}`
          if (Number(await command('EXISTS', moved)) === 1) await command('DECRBY', moved, ms * 1_000)
          for (let i = 0; i < times; i++) {
            const [ours, theirs] = [await limiter.take(someone), await memory.take(someone)]
            const { seconds, ...rest } = ours
            assert.deepEqual(rest, { admitted: theirs.admitted, remaining: theirs.remaining })
            assert.ok(Math.abs(seconds - theirs.seconds) <= 5, `${seconds} s, in memory ${theirs.seconds} s`)
          }
        }
      }),
      { numRuns: 100 },
    )
  })

  test('in a network too every answer is that of the limiter in memory', async t => {
    const step = fc.record({
      pause: fc.integer({ min: 0, max: 8 }),
      clients: fc.integer({ min: 1, max: 20 }),
      times: fc.integer({ min: 1, max: 4 }),
    })
    // An interval of the network is at least 30 minutes, so that it makes no difference how long the test takes.
    const quota = { limit: 3, window: 86_400 }
    const { limiter, command } = await opened(t, quota)
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 5 }), async steps => {
        const network = `network ${run++}`
        const clock = { now: 0 }
        const memory = memoryLimiter({ ...quota, now: () => clock.now })
        for (const { pause, clients, times } of steps) {
          // Time passes for the server too when what it knows is moved back: by halves of the network's interval.
          const ms = (pause * quota.window * 1_000) / quota.limit / 16 / 2
          clock.now += ms
          for (const key of (await command('KEYS', `waitlist:limit:${network}*`)) as string[]) {
            await command('DECRBY', key, ms * 1_000)
          }
          for (let i = 0; i < clients * times; i++) {
            const client = `${network} client ${i % clients}`
            const [ours, theirs] = [await limiter.take(client, network), await memory.take(client, network)]
            const { seconds, ...rest } = ours
            assert.deepEqual(rest, { admitted: theirs.admitted, remaining: theirs.remaining })
            assert.ok(Math.abs(seconds - theirs.seconds) <= 5, `${seconds} s, in memory ${theirs.seconds} s`)
          }
        }
      }),
      { numRuns: 30 },
    )
  })

  test('a key lives until the quota is full again, at most a window, and none stays', async t => {
    const { limiter, command } = await opened(t, { limit: 4, window: 2 })
    const lives = async () => Number(await command('PTTL', key))
    await limiter.take(client)
    const once = await lives()
    assert.ok(once > 0 && once <= 500, `${once} ms after one of four attempts`)
    await Promise.all(Array.from({ length: 20 }, () => limiter.take(client)))
    const full = await lives()
    assert.ok(full > 0 && full <= 2_000, `${full} ms with the quota used up`)
    for (let i = 0; i < 200; i++) await limiter.take(`client ${i}`)
    await until(async () => Number(await command('DBSIZE')) === 0)
  })

  test('a clock that was set back locks nobody out for longer than a window', async t => {
    const { limiter, command } = await opened(t, { limit: 3, window: 3 })
    const hour = 3_600
    const [seconds] = (await server.command('time')) as string[]
    await command('SET', key, (Number(seconds) + hour) * 1_000_000, 'EX', hour)
    assert.deepEqual(await limiter.take(client), { admitted: false, remaining: 0, seconds: 1 })
    assert.ok(Number(await command('PTTL', key)) <= 3_000)
    await until(async () => (await limiter.take(client)).admitted)
  })

  test('where something else is kept under the name of a key, the attempt fails and nothing is changed', async t => {
    const { limiter, command } = await opened(t, { limit: 2, window: 60 })
    await command('SET', key, 'something else')
    await assert.rejects(limiter.take(client))
    assert.equal(String(await command('GET', key)), 'something else')
    await command('DEL', key)
    await command('HSET', key, 'field', 'value')
    await assert.rejects(limiter.take(client), /WRONGTYPE/)
  })
})

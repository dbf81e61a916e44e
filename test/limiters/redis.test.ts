import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import type { Quota } from '../../src/limiters/memory.ts'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { redisLimiter } from '../../src/limiters/redis.ts'
import { readRedisUrl } from '../../src/limiters/redis-url.ts'
import { limiterContract } from '../contracts/limiter.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { noRedis, redisProgram, startRedis } from '../harness/redis.ts'
import { fixture } from '../harness/tls.ts'
import { answers, connectedLimiter, failsWith, openedLimiter } from './connected.ts'

const skip = redisProgram === undefined ? noRedis : false
const client = '192.0.2.1'
const key = `waitlist:limit:${client}`

describe('Redis or Valkey', { skip }, async () => {
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
  })

  // An interval is at least 30 seconds, so that it makes no difference how long the test takes.
  test('every answer is that of the limiter in memory, whatever came before', async t => {
    const quotas = [
      [1, 60],
      [3, 7_200],
      [20, 600],
      [37, 86_400],
    ] as const
    const step = fc.record({
      pause: fc.integer({ min: 0, max: 12 }),
      clients: fc.integer({ min: 1, max: 4 }),
      times: fc.integer({ min: 1, max: 4 }),
    })
    const limiters = await Promise.all(
      quotas.map(async ([limit, window]) => ({ limit, window, ...(await opened(t, { limit, window })) })),
    )
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...limiters), fc.array(step, { maxLength: 5 }), async (one, steps) => {
        const { limit, window, limiter, command } = one
        const mark = `run ${run++}`
        const clock = { now: 0 }
        const memory = memoryLimiter({ limit, window, now: () => clock.now })
        for (const { pause, clients, times } of steps) {
          // Time passes for the server too when what it knows is moved back: by quarters of an interval.
          const ms = Math.ceil((pause * window * 1_000) / limit / 4)
          clock.now += ms
          for (const key of (await command('KEYS', `waitlist:limit:${mark} *`)) as string[]) {
            await command('DECRBY', key, ms * 1_000)
          }
          for (let i = 0; i < clients * times; i++) {
            const client = `${mark} ${i % clients}`
            const [ours, theirs] = [await limiter.take(client), await memory.take(client)]
            const { seconds, ...rest } = ours
            assert.deepEqual(rest, { admitted: theirs.admitted, remaining: theirs.remaining })
            assert.ok(Math.abs(seconds - theirs.seconds) <= 5, `${seconds} s, in memory ${theirs.seconds} s`)
          }
        }
      }),
      { numRuns: 60 },
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

const quota = { limit: 3, window: 600 }
/** As in docs/instances.md. */
const rights = 'on >s3cret ~waitlist:limit:* -@all +evalsha +eval +time +get +set'.split(' ')

/** Resolves when what is at this URL fails for this reason. */
async function fails(t: TestContext, url: string, why: RegExp): Promise<void> {
  const limiter = openedLimiter(t, { ...quota, url })
  await until(() => failsWith(limiter, why))
}

describe('a server with TLS', { skip }, async () => {
  if (skip !== false) return
  const [first, firstKey, second, secondKey] = ['first.crt', 'first.key', 'second.crt', 'second.key'].map(name =>
    fileURLToPath(fixture(name)),
  )
  const port = await freePort()
  const tls = { 'tls-cert-file': first, 'tls-key-file': firstKey, 'tls-ca-cert-file': second }
  const options = Object.entries({ 'tls-port': port, ...tls }).flatMap(([name, value]) => [`--${name}`, `${value}`])
  const server = await startRedis(options)
  after(() => server.remove())
  const files = (names: Record<string, string>) => new URLSearchParams(names).toString()

  test('is used with an authority and a certificate of our own', async t => {
    const url = `rediss://localhost:${port}?${files({ cacert: first!, cert: second!, key: secondKey! })}`
    const limiter = await connectedLimiter(t, { ...quota, url })
    assert.equal((await limiter.take(client)).remaining, 2)
  })

  test('is not used without the authority, nor without the certificate that it asks for', async t => {
    await fails(t, `rediss://localhost:${port}`, /self-signed certificate/)
    await fails(t, `rediss://localhost:${port}?${files({ cacert: first! })}`, /certificate required|closed/)
    await fails(t, `rediss://localhost:${port}?${files({ cacert: second! })}`, /self-signed certificate/)
  })

  test('a file that cannot be read stops the start, and is named', () => {
    const place = readRedisUrl('rediss://localhost?cacert=/nowhere/ca.pem')!
    assert.throws(() => redisLimiter({ location: place, ...quota }), {
      name: 'OperatorError',
      message: /\/nowhere\/ca\.pem/,
    })
  })
})

describe('a user with no more rights than needed', { skip }, async () => {
  if (skip !== false) return
  const server = await startRedis()
  after(() => server.remove())
  await server.command('acl', 'setuser', 'waitlist', ...rights)
  const at = (user: string, db = '') => `${server.url.replace('//', `//${user}@`)}${db}`

  test('counts, also where the server does not know the script', async t => {
    const limiter = await connectedLimiter(t, { ...quota, url: at('waitlist:s3cret') })
    assert.equal((await limiter.take(client)).remaining, 2)
    await server.command('script', 'flush')
    assert.equal((await limiter.take(client)).remaining, 1)
  })

  test('each of the rights is needed', async t => {
    for (const right of ['evalsha', 'eval', 'time', 'get', 'set']) {
      const user = `without-${right}`
      await server.command('acl', 'setuser', user, ...rights.filter(each => each !== `+${right}`))
      const limiter = openedLimiter(t, { ...quota, url: at(`${user}:s3cret`) })
      await until(() => failsWith(limiter, /NOPERM|no permissions|can't run this command/))
    }
  })

  test('another database needs the right to select it', async t => {
    await server.command('acl', 'setuser', 'elsewhere', ...rights, '+select')
    const limiter = await connectedLimiter(t, { ...quota, url: at('elsewhere:s3cret', '/5') })
    await limiter.take(client)
    assert.match(String(await server.command('info', 'keyspace')), /db5:keys=2/)
  })

  test('a database that the server does not have is the reason, and nothing is counted in another one', async t => {
    const limiter = openedLimiter(t, { ...quota, url: `${server.url}/99` })
    const isRefused = () => failsWith(limiter, /DB index is out of range/)
    await until(async () => (await isRefused()) || answers(limiter))
    await assert.rejects(limiter.take('nowhere'), /DB index is out of range/)
    assert.equal(Number(await server.command('exists', 'waitlist:limit:nowhere')), 0)
  })

  test('a wrong password is the reason, and is not in it', async t => {
    await fails(t, at('waitlist:wr0ng'), /^(?!.*wr0ng).*WRONGPASS/)
  })
})

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { withFallback } from '../../src/limiters/with-fallback.ts'
import type { Limiter } from '../../src/waitlist/ports/limiter.ts'
import { type Fault, startFaultProxy } from '../harness/fault-proxy.ts'
import { until } from '../harness/program.ts'
import { noRedis, type RedisServer, redisProgram, startRedis } from '../harness/redis.ts'
import { seedOf } from '../harness/seed.ts'
import { recordingLog } from '../harness/service.ts'
import { answers, connectedLimiter, failsWith, openedLimiter } from './connected.ts'

const skip = redisProgram === undefined ? noRedis : false
const quota = { limit: 3, window: 600 }
const AWAY = 'the shared rate limit is away: each instance counts by itself'
const BACK = 'the shared rate limit is used again'
/** As it is used: 50 ms, and no more. */
const timeout = 50

async function server(t: TestContext, more: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedis(more)
  t.after(() => server.remove())
  return server
}

/** As the service has it. It says where it counted; `past` is how long ago it started, for the log. */
function insure(shared: Limiter, past = 2_000) {
  const { log, logged } = recordingLog()
  let ahead = 0
  const limiter = withFallback(shared, memoryLimiter(quota), log, () => performance.now() + ahead)
  ahead = past
  return { limiter, logged, said: () => logged.map(({ msg }) => msg) }
}

const backAgain = (limiter: Limiter, said: () => unknown[]) =>
  until(async () => {
    await limiter.take('somebody else')
    return said().at(-1) === BACK
  })

describe('Redis or Valkey away', { skip, concurrency: 3 }, () => {
  for (const [how, end, mend] of [
    ['stopped', 'stop', 'start'],
    ['hanging', 'pause', 'goOn'],
  ] as const) {
    test(`${how}: every attempt is answered, the log has two lines, and it is used again`, async t => {
      const own = await server(t)
      const { limiter, said, logged } = insure(await connectedLimiter(t, { ...quota, url: own.url, timeout }))
      assert.equal((await limiter.take('before')).remaining, 2)
      await own[end]()
      const crowd = await Promise.all(Array.from({ length: 200 }, () => limiter.take('crowd')))
      assert.equal(crowd.filter(({ admitted }) => admitted).length, 3)
      assert.deepEqual(said(), [AWAY])
      // On a busy machine the time may be over before the end of the connection is noticed.
      const why = how === 'stopped' ? /closed|ECONN|no connection|no answer/ : /no answer within 50 ms/
      assert.match(String(logged[0]!.why), why)
      await own[mend]()
      await backAgain(limiter, said)
      assert.deepEqual(said(), [AWAY, BACK])
      // A server that hung counts again where it was; one that was started again is empty.
      assert.equal((await limiter.take('before')).remaining, how === 'stopped' ? 2 : 1)
      assert.deepEqual(said(), [AWAY, BACK])
    })
  }

  test('not there at the start: the local limiter stands in, and it is used once it is there', async t => {
    const own = await server(t)
    await own.stop()
    const early = insure(openedLimiter(t, { ...quota, url: own.url, timeout }), 0)
    const late = insure(openedLimiter(t, { ...quota, url: own.url, timeout }))
    for (const { limiter } of [early, late]) assert.equal((await limiter.take('first')).remaining, 2)
    assert.deepEqual(early.said(), [])
    assert.deepEqual(late.said(), [AWAY])
    const limiter = openedLimiter(t, { ...quota, url: own.url, timeout })
    await until(() => failsWith(limiter, /ECONNREFUSED/))
    await own.start()
    await backAgain(late.limiter, late.said)
  })

  test('the reason is told, and no password', async t => {
    const own = await server(t)
    // A busy machine, which answers late, would be the reason.
    const timeout = 5_000
    const limiter = await connectedLimiter(t, { ...quota, url: own.url, timeout })
    /** Waits until it fails so, and looks at what the log would say. */
    const says = async (limiter: Limiter, why: RegExp) => {
      await until(() => failsWith(limiter, why))
      const { limiter: sure, logged } = insure(limiter)
      assert.equal((await sure.take('somebody')).remaining, 2)
      assert.match(String(logged[0]!.why), why)
      assert.doesNotMatch(JSON.stringify(logged), /s3cret|wr0ng/)
    }
    await own.command('config', 'set', 'maxmemory', '1')
    await says(limiter, /OOM/)
    await own.command('config', 'set', 'maxmemory', '0')
    await until(() => answers(limiter))
    // A master that became somebody's replica, as the old one after a failover.
    await own.command('replicaof', '127.0.0.1', '1')
    await says(limiter, /READONLY/)
    await own.command('replicaof', 'no', 'one')
    await until(() => answers(limiter))
    await own.command('config', 'set', 'requirepass', 's3cret')
    await says(openedLimiter(t, { ...quota, url: own.url, timeout }), /NOAUTH/)
    const wrong = own.url.replace('//', '//:wr0ng@')
    await says(openedLimiter(t, { ...quota, url: wrong, timeout }), /WRONGPASS/)
  })

  test('a server that became a replica is left, since its name may be that of another one by now', async t => {
    const own = await server(t)
    const limiter = await connectedLimiter(t, { ...quota, url: own.url })
    const ids = async () =>
      [...String(await own.command('client', 'list')).matchAll(/^id=(\d+) .*name=waitlist /gm)].map(([, id]) => id)
    const before = await ids()
    assert.equal(before.length, 1)
    await own.command('replicaof', '127.0.0.1', '1')
    assert.ok(await failsWith(limiter, /READONLY/))
    await until(async () => {
      const now = await ids()
      return now.length === 1 && now[0] !== before[0]
    })
  })

  test('a link that fails in every way fails no attempt and loses no connection for good', async t => {
    const seed = seedOf(t)
    const own = await server(t)
    const proxy = await startFaultProxy(own.port, seed)
    t.after(() => proxy.close())
    const shared = await connectedLimiter(t, { ...quota, url: `redis://127.0.0.1:${proxy.port}`, timeout })
    const { limiter, said } = insure(shared)
    const faults: Fault[] = [
      { is: 'reset', most: 200 },
      { is: 'slice', most: 5 },
      { is: 'black hole', loses: 'answers' },
      { is: 'black hole', loses: 'requests' },
      { is: 'pause' },
      { is: 'delay', most: 120 },
    ]
    for (const fault of faults) {
      proxy.set(fault)
      const client = `under ${JSON.stringify(fault)}`
      let admitted = 0
      for (let round = 0; round < 5; round++) {
        const attempts = await Promise.all(Array.from({ length: 20 }, () => limiter.take(client)))
        admitted += attempts.filter(attempt => attempt.admitted).length
      }
      // One quota here and one there, at the most.
      assert.ok(admitted >= 3 && admitted <= 6, `${admitted} of 100 ${client}, seed ${seed}`)
      proxy.cut()
      proxy.set({ is: 'none' })
      await until(() => answers(shared))
    }
    proxy.set({ is: 'none' })
    await until(async () => {
      await limiter.take('somebody else')
      return said().length % 2 === 0
    })
    assert.equal((await limiter.take('after')).remaining, 2)
  })

  test('an attempt whose answer is lost has counted, which is the safe side: nothing is sent again', async t => {
    const own = await server(t)
    const proxy = await startFaultProxy(own.port, 1)
    t.after(() => proxy.close())
    const url = `redis://127.0.0.1:${proxy.port}`
    const limiter = await connectedLimiter(t, { ...quota, url, timeout })
    proxy.set({ is: 'black hole', loses: 'answers' })
    await assert.rejects(limiter.take('lost'), /no answer within 50 ms/)
    await until(async () => Number(await own.command('exists', 'waitlist:limit:lost')) === 1)
    proxy.cut()
    proxy.set({ is: 'none' })
    await until(() => answers(limiter))
    assert.equal((await limiter.take('lost')).remaining, 1)
  })

  test('while there is no connection nothing is kept: each attempt fails at once, and none is sent later', async t => {
    const own = await server(t)
    const limiter = await connectedLimiter(t, { ...quota, url: own.url })
    await own.stop()
    await until(() => failsWith(limiter, /ECONNREFUSED/))
    let failed = 0
    for (let i = 0; i < 10_000; i++) limiter.take(`client ${i}`).catch(() => failed++)
    // What is asked in one turn of the event loop is sent in the next.
    for (let turn = 0; turn < 3; turn++) await new Promise(resolve => setImmediate(resolve))
    assert.equal(failed, 10_000)
    await own.start()
    await until(() => answers(limiter))
    assert.equal(await own.command('dbsize'), 1, 'the one that was answered')
  })

  test('closed in any state it lets the process end', async t => {
    const own = await server(t)
    const connected = await connectedLimiter(t, { ...quota, url: own.url })
    const connecting = openedLimiter(t, { ...quota, url: own.url })
    await own.stop()
    for (const limiter of [connected, connecting]) {
      await limiter.close()
      await assert.rejects(limiter.take('x'))
    }
  })
})

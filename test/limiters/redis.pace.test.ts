import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { redisPace } from '../../src/limiters/redis.ts'
import { readRedisUrl } from '../../src/limiters/redis-url.ts'
import { attempting } from '../../src/outbound/attempt.ts'
import { caller } from '../../src/outbound/caller.ts'
import type { SharedPace } from '../../src/waitlist/ports/limiter.ts'
import { until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { noRedis, redisProgram, startRedis } from '../harness/redis.ts'

const skip = redisProgram === undefined ? noRedis : false
const HOUR = 3_600_000
const never = new AbortController().signal

describe('the pace that instances share', { skip }, async () => {
  if (skip !== false) return
  const server = await startRedis()
  after(() => server.remove())

  /** `timeout` is long where the test is not about it, since the machine may be slow. */
  function opened(t: TestContext, url = server.url, timeout = 20_000): SharedPace {
    const shared = redisPace(readRedisUrl(url)!, timeout)
    t.after(() => shared.close())
    return shared
  }

  /** Whether turns are counted by the server at this moment. */
  const counts = async ({ take }: SharedPace): Promise<boolean> => {
    const key = `probe ${Math.random()}`
    return (await take(key, 1, HOUR, HOUR)) === 0 && (await take(key, 1, HOUR, HOUR)) !== 0
  }

  async function instances(t: TestContext): Promise<readonly SharedPace[]> {
    const all = [1, 2, 3].map(() => opened(t))
    await Promise.all(all.map(each => until(() => counts(each))))
    return all
  }

  test('three instances that ask at once get the turns of one, one window after the other', async t => {
    const all = await instances(t)
    const before = performance.now()
    const asked = Array.from({ length: 20 }, (_, i) => all[i % 3]!.take('turns', 5, 10_000, 60_000))
    const waits = (await Promise.all(asked)).map(wait => wait!).sort((a, b) => a - b)
    const spent = performance.now() - before
    for (const [i, wait] of waits.entries()) {
      const due = Math.floor(i / 5) * 10_000
      assert.ok(wait <= due && wait >= due - spent - 1, `turn ${i}: ${wait} ms`)
    }
  })

  test('who would wait for too long takes no turn from those who come later', async t => {
    const [one, two, three] = await instances(t)
    assert.equal(await one!.take('patience', 1, 10_000, 0), 0)
    for (let i = 0; i < 3; i++) assert.equal(await two!.take('patience', 1, 10_000, 500), null)
    const wait = await three!.take('patience', 1, 10_000, 20_000)
    assert.ok(wait !== null && wait > 0 && wait <= 10_000, String(wait))
  })

  test('each account has turns of its own, and they are forgotten when they are over', async t => {
    const [one] = await instances(t)
    assert.equal(await one!.take('a', 1, HOUR, 0), 0)
    assert.equal(await one!.take('b', 1, HOUR, 0), 0)
    assert.equal(await one!.take('a', 1, HOUR, 0), null)
    const left = Number(await server.command('PTTL', 'waitlist:pace:a'))
    assert.ok(left > 0 && left <= HOUR, String(left))
  })

  test('a clock that was set back holds nobody for longer than a window and a minute', async t => {
    const [one] = await instances(t)
    const [seconds] = (await server.command('TIME')) as [string]
    await server.command('RPUSH', 'waitlist:pace:clock', String((Number(seconds) + 86_400) * 1_000_000))
    assert.equal(await one!.take('clock', 1, 1_000, 0), 0)
    assert.equal(await one!.take('clock', 1, HOUR, 0), null, 'and it counts from here')
  })

  test('while the server is away every turn is now, and then they are shared again', async t => {
    const own = await startRedis()
    t.after(() => own.remove())
    const shared = opened(t, own.url, 500)
    await until(() => counts(shared))
    for (const [end, mend] of [
      [own.stop, own.start],
      [own.pause, own.goOn],
    ] as const) {
      await end()
      for (let i = 0; i < 5; i++) assert.equal(await shared.take('away', 1, HOUR, 0), 0)
      await mend()
      await until(() => counts(shared))
    }
  })

  test('three callers together send no more than the rate of the account allows; the rest is not sent', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 200, body: {} }))
    const rate = { calls: 4, per: 60_000, connections: 10 }
    const sendFrom = async (paces: readonly (SharedPace | undefined)[], key: string) => {
      const callers = paces.map(shared => caller({ base: url, headers: { authorization: key }, rate, shared }))
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          attempting(
            5_000,
            never,
            attempt => callers[i % 3]!.call({ to: 'ask', method: 'GET', path: '/' }, attempt),
            () => true,
            'visitor',
          ),
        ),
      )
      await Promise.all(callers.map(({ close }) => close()))
      return outcomes
    }
    const outcomes = await sendFrom(await instances(t), 'one account')
    assert.equal(received.length, 4)
    assert.equal(outcomes.filter(({ is }) => is === 'answered').length, 4)
    assert.equal(outcomes.filter(each => each.is === 'unreached' && each.notSent === true).length, 8)
    const keys = (await server.command('KEYS', 'waitlist:pace:*')) as string[]
    assert.ok(!keys.join().includes('account'), 'the key of the account is not told to the server')

    await sendFrom([undefined, undefined, undefined], 'another account')
    assert.equal(received.length, 16, 'each by itself would have sent four')
  })
})

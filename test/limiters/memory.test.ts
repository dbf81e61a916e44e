import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { memoryLimiter } from '../../src/limiters/memory.ts'
import { limiterClockContract, limiterContract } from '../contracts/limiter.ts'

limiterContract('memory', async (t, quota) => {
  const limiter = memoryLimiter(quota)
  t.after(() => limiter.close())
  return limiter
})

limiterClockContract('memory', (quota, now) => memoryLimiter({ ...quota, now }))

describe('the bounded table of the limiter in memory', () => {
  test('at most `clients` keys are remembered: of a spray the oldest have their quota back', async () => {
    const limiter = memoryLimiter({ limit: 1, window: 600, clients: 1_000, now: () => 0 })
    for (let i = 0; i < 5_000; i++) await limiter.take(`sprayed ${i}`)
    let remembered = 0
    // From the newest: looking never makes a remembered one be forgotten, as it is kept younger than the unknown ones.
    for (let i = 4_999; i >= 0; i--) if (!(await limiter.take(`sprayed ${i}`)).admitted) remembered++
    assert.ok(remembered >= 500, 'at least the younger half is remembered')
    assert.ok(remembered <= 1_000)
  })

  test('a blocked client that keeps trying stays blocked through any spray', async () => {
    const clients = 1_000
    const limiter = memoryLimiter({ limit: 2, window: 600, clients, now: () => 0 })
    for (let i = 0; i < 2; i++) assert.equal((await limiter.take('blocked')).admitted, true)
    for (let i = 0; i < 200_000; i++) {
      await limiter.take(`sprayed ${i}`)
      // Often enough is: once in less than half a table of fresh addresses.
      if (i % (clients / 2 - 1) === 0) assert.equal((await limiter.take('blocked')).admitted, false, `after ${i}`)
    }
  })

  test('a spray from one network forgets nobody: who is refused for the network alone takes no place', async () => {
    const limiter = memoryLimiter({ limit: 2, window: 600, clients: 1_000, now: () => 0 })
    for (let i = 0; i < 3; i++) assert.equal((await limiter.take('blocked')).admitted, i < 2)
    for (let i = 0; i < 10_000; i++) await limiter.take(`sprayed ${i}`, 'network')
    assert.equal((await limiter.take('blocked')).admitted, false)
    assert.equal((await limiter.take('sprayed 10000', 'network')).admitted, false)
  })

  test('without a spray nobody is forgotten too early, whenever the generations change', async () => {
    // Every client uses up its quota at another moment of the generation; none gets more than it should.
    const clock = { now: 0 }
    const limiter = memoryLimiter({ limit: 1, window: 100, now: () => clock.now })
    const admittedAt = new Map<string, number>()
    for (let second = 0; second < 1_000; second++) {
      clock.now = second * 1_000
      for (let each = 0; each < 10; each++) {
        // Some try all the time, some every 7, 13, … 67 seconds, so that they are in the older generation at times.
        if (second % (each * 6 + 1) !== 0) continue
        const client = `client ${each}`
        if (!(await limiter.take(client)).admitted) continue
        const before = admittedAt.get(client)
        assert.ok(before === undefined || second - before >= 100, `${client} after ${second - (before ?? 0)} seconds`)
        admittedAt.set(client, second)
      }
    }
  })
})

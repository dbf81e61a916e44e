import assert from 'node:assert/strict'
import { test } from 'node:test'
import { throttle } from '../../src/waitlist/quiet-log.ts'

test('the first line is written at once, the next when the quiet time is over, counted from the last line', () => {
  let now = 5
  const mayTell = throttle(60_000, () => now)
  const told: number[] = []
  for (; now < 200_000; now += 1_000) if (mayTell()) told.push(now)
  assert.deepEqual(told, [5, 60_005, 120_005, 180_005])
})

test('after a long silence a line is written at once', () => {
  let now = 0
  const mayTell = throttle(60_000, () => now)
  assert.equal(mayTell(), true)
  now = 3_600_000
  assert.deepEqual([mayTell(), mayTell()], [true, false])
})

test('each throttle counts for itself', () => {
  const one = throttle(60_000)
  const other = throttle(60_000)
  assert.deepEqual([one(), other(), one(), other()], [true, true, false, false])
})

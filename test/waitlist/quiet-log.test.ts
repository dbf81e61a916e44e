import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summary, throttle } from '../../src/waitlist/quiet-log.ts'

test('a summary says the first at once, counts what follows within ten seconds, and says that count too', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  const pass = (milliseconds: number) => {
    now += milliseconds
    t.mock.timers.tick(milliseconds)
  }
  const lines: unknown[] = []
  const say = summary<string>(
    (count, last) => lines.push([count, last]),
    () => now,
  )
  say('a')
  assert.deepEqual(lines.splice(0), [[1, 'a']])
  for (const each of ['b', 'c', 'd']) say(each)
  pass(9_999)
  assert.deepEqual(lines, [])
  pass(1)
  assert.deepEqual(lines.splice(0), [[3, 'd']])
  say('e')
  pass(10_000)
  assert.deepEqual(lines.splice(0), [[1, 'e']])
  pass(10_000)
  say('f')
  assert.deepEqual(lines.splice(0), [[1, 'f']])
  pass(60_000)
  assert.deepEqual(lines, [])
})

test('a throttle lets the first line through, the next when the quiet time is over, and one after a long silence', () => {
  let now = 5
  const mayTell = throttle(60_000, () => now)
  const told: number[] = []
  for (; now < 200_000; now += 1_000) if (mayTell()) told.push(now)
  assert.deepEqual(told, [5, 60_005, 120_005, 180_005])
  now += 3_600_000
  assert.deepEqual([mayTell(), mayTell()], [true, false])
})

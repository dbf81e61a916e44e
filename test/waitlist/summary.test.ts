import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summary } from '../../src/waitlist/quiet-log.ts'

test('the first is told at once, what follows within ten seconds is counted, and the count is told in any case', t => {
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

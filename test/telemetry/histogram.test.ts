import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOf, histogram, observe } from '../../src/telemetry/telemetry.ts'

const BOUNDS = [0.001, 0.01, 0.1, 1]

test('a value is counted in the first bucket whose bound it does not exceed', () => {
  const seen = histogram(BOUNDS)
  for (const value of [0, 0.001, 0.0011, 0.01, 1, 1.1, 99]) observe(seen, value)
  assert.deepEqual(seen.counts, [2, 2, 0, 1, 2])
  assert.equal(countOf(seen), 7)
  assert.ok(Math.abs(seen.sum - 101.1121) < 1e-9)
})

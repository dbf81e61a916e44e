import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { countOf, histogram, observe, quantile } from '../../src/telemetry/histogram.ts'

const BOUNDS = [0.001, 0.01, 0.1, 1]

test('a value is counted in the first bucket whose bound it does not exceed', () => {
  const seen = histogram(BOUNDS)
  for (const value of [0, 0.001, 0.0011, 0.01, 1, 1.1, 99]) observe(seen, value)
  assert.deepEqual(seen.counts, [2, 2, 0, 1, 2])
  assert.equal(countOf(seen), 7)
  assert.ok(Math.abs(seen.sum - 101.1121) < 1e-9)
})

test('a quantile lies in the bucket that holds it', () => {
  const values = fc.array(fc.double({ min: 0, max: 2, noNaN: true }), { minLength: 1 })
  fc.assert(
    fc.property(values, fc.constantFrom(0.5, 0.9, 0.99, 1), (values, share) => {
      const seen = histogram(BOUNDS)
      for (const value of values) observe(seen, value)
      const exact = values.toSorted((a, b) => a - b)[Math.ceil(share * values.length) - 1]!
      const to = BOUNDS.find(bound => exact <= bound) ?? Number.POSITIVE_INFINITY
      const from = BOUNDS[BOUNDS.indexOf(to) - 1] ?? 0
      const estimated = quantile(seen, share)!
      if (to === Number.POSITIVE_INFINITY) assert.equal(estimated, to)
      else assert.ok(estimated >= from && estimated <= to, `${estimated} for ${exact}`)
    }),
  )
})

test('without observations there is no quantile', () => assert.equal(quantile(histogram(BOUNDS), 0.99), null))

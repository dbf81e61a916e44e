import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { LONGEST_RETRY_AFTER, untilNextDelivery, untilNextRegistration } from '../../src/waitlist/retry.ts'

const HOUR = 3_600_000
const MIDDLE = 0.5
const waits = (count: number, next: (attempts: number) => number | null) =>
  Array.from({ length: count }, (_, i) => next(i + 1)).map(wait => (wait === null ? null : wait / 1_000))

describe('when to try again', () => {
  test('to register: seconds at first, in the end once a day, and never not', () => {
    assert.deepEqual(
      waits(13, attempts => untilNextRegistration(attempts, MIDDLE)),
      [2, 5, 15, 60, 300, 1_800, 7_200, 21_600, 43_200, 86_400, 86_400, 86_400, 86_400],
    )
  })

  test('to deliver: ten attempts in about 75 hours, then no more', () => {
    const schedule = waits(11, attempts => untilNextDelivery(attempts, MIDDLE))
    assert.deepEqual(schedule, [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, null, null])
    const sum = schedule.reduce<number>((total, wait) => total + (wait ?? 0), 0)
    assert.ok(sum / 3_600 > 75 && sum / 3_600 < 76)
  })

  test('scattered by a fifth', () => {
    assert.deepEqual([untilNextRegistration(4, 0), untilNextRegistration(4, 1)], [48_000, 72_000])
    assert.deepEqual([untilNextDelivery(2, 0), untilNextDelivery(2, 1)], [240_000, 360_000])
  })

  test('what the other side asks for is waited for, when it is longer, up to a day', () => {
    for (const next of [untilNextRegistration, untilNextDelivery]) {
      assert.equal(next(3, MIDDLE, 10), next(3, MIDDLE))
      assert.equal(next(3, MIDDLE, 2 * HOUR), 2 * HOUR)
      assert.equal(next(3, MIDDLE, Number.POSITIVE_INFINITY), LONGEST_RETRY_AFTER)
    }
    assert.equal(untilNextDelivery(10, MIDDLE, 2 * HOUR), null)
  })

  test('always whole milliseconds, as a store keeps them, within the bounds', () => {
    const after = fc.option(fc.double({ min: 0, max: 2 * LONGEST_RETRY_AFTER, noNaN: true }), { nil: undefined })
    const random = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), random, after, (attempts, at, asked) => {
        for (const next of [untilNextRegistration, untilNextDelivery]) {
          const wait = next(attempts, at, asked)
          if (wait === null) continue
          assert.ok(Number.isInteger(wait) && wait >= 1_600 && wait <= LONGEST_RETRY_AFTER * 1.2, String(wait))
          assert.ok(wait >= Math.min(asked ?? 0, LONGEST_RETRY_AFTER))
        }
      }),
    )
  })
})

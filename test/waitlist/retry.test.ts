import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { judgeFailure } from '../../src/waitlist/delivery/deliver.ts'
import {
  eventSchedule,
  handOverSchedule,
  LONGEST_WAIT,
  type Schedule,
  untilNext,
  untilOutageEnds,
  untilTurn,
} from '../../src/waitlist/delivery/retry.ts'
import type { Failure } from '../../src/waitlist/ports/failure.ts'
import type { Contact } from '../../src/waitlist/rules/contact.ts'

const DAY = 86_400_000
const MIDDLE = 0.5
const waits = (count: number, schedule: Schedule) =>
  Array.from({ length: count }, (_, i) => untilNext(schedule, i + 1, MIDDLE)).map(wait => wait && wait / 1_000)

describe('when to try again', () => {
  test('to hand over: seconds at first, in the end once a day, and never not', () => {
    const schedule = [2, 5, 15, 60, 300, 1_800, 7_200, 21_600, 43_200, 86_400, 86_400, 86_400, 86_400]
    assert.deepEqual(waits(13, handOverSchedule), schedule)
    assert.equal(untilNext(handOverSchedule, 1_000_000, MIDDLE), DAY)
  })

  test('to tell of an event: ten attempts in about 75 hours, then no more', () => {
    const schedule = waits(11, eventSchedule)
    assert.deepEqual(schedule, [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, null, null])
    const sum = schedule.reduce<number>((total, wait) => total + (wait ?? 0), 0)
    assert.ok(sum / 3_600 > 75 && sum / 3_600 < 76)
  })

  test('scattered by a fifth', () => {
    assert.deepEqual([untilNext(handOverSchedule, 4, 0), untilNext(handOverSchedule, 4, 1)], [48_000, 72_000])
    assert.deepEqual([untilNext(eventSchedule, 2, 0), untilNext(eventSchedule, 2, 1)], [240_000, 360_000])
    assert.deepEqual([untilOutageEnds(null, 0), untilOutageEnds(null, 1)], [16_000, 24_000])
    assert.deepEqual([untilTurn(0), untilTurn(1)], [4_000, 6_000])
  })

  test('no stored wait is longer than the longest, whatever the failure', () => {
    const failures: readonly Failure[] = [
      { is: 'unreached', why: '429', retryAfter: 1e12 },
      { is: 'unreached', why: 'not sent', notSent: true },
      { is: 'unclear', why: '503', retryAfter: 1e12 },
      { is: 'misconfigured', why: '401' },
    ]
    const waits: number[] = []
    for (let attempts = 0; attempts < 31; attempts++) {
      for (const failure of failures) {
        for (const schedule of [handOverSchedule, eventSchedule]) {
          for (const blame of ['destination', 'delivery'] as const) {
            const delivery = { number: 1, token: '', contact: {} as Contact, doubt: false, attempts }
            const settlement = judgeFailure(failure, delivery, { schedule, mayRepeat: () => true }, blame, 1)
            if (settlement.is === 'waiting') waits.push(settlement.wait)
          }
        }
      }
    }
    assert.equal(Math.max(...waits), LONGEST_WAIT)
  })

  test('always whole milliseconds, as a store keeps them, within the bounds', () => {
    const random = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), random, (failures, at) => {
        for (const schedule of [handOverSchedule, eventSchedule]) {
          const own = untilNext(schedule, failures, at)
          if (own !== null) assert.ok(Number.isInteger(own) && own >= 1_600 && own <= DAY * 1.2, String(own))
          for (const wait of [untilOutageEnds(own, at), untilTurn(at)]) {
            assert.ok(Number.isInteger(wait) && wait > 0 && wait <= 30_000, String(wait))
          }
        }
      }),
    )
  })
})

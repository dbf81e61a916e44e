import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Delivery, Settlement } from '../../src/store/outbox.ts'
import { judgeFailure } from '../../src/waitlist/delivery/deliver.ts'
import {
  eventSchedule,
  handOverSchedule,
  type Schedule,
  untilNext,
  untilOutageEnds,
  untilTurn,
} from '../../src/waitlist/delivery/retry.ts'
import type { Failure } from '../../src/waitlist/ports/destination.ts'

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

const unreached: Failure = { is: 'unreached', why: 'refused' }
const unclear: Failure = { is: 'unclear', why: 'no answer in time' }
const misconfigured: Failure = { is: 'misconfigured', why: 'answered with 401' }
const halfDone: Failure = { is: 'misconfigured', why: 'no such list', tookEffect: true }
const notSent: Failure = { is: 'unreached', why: 'too many wait', notSent: true }
const restNotSent: Failure = { is: 'unclear', why: 'too many wait', notSent: true }
const failures = [unreached, unclear, misconfigured, halfDone, notSent]

const contact = { id: 'c1', name: 'Ada', email: 'ada@example.com', state: 'listed', createdAt: new Date(0) } as const

interface At {
  readonly attempts?: number
  readonly doubt?: boolean
  readonly mayRepeat?: boolean
  readonly blame?: 'destination' | 'delivery'
  readonly schedule?: typeof eventSchedule
  readonly random?: number
}

function settled(failure: Failure, at: At = {}): Settlement {
  const { attempts = 0, doubt = false, mayRepeat = true, blame = 'delivery' } = at
  const { schedule = eventSchedule, random = MIDDLE } = at
  const delivery: Delivery = { number: 1, token: 't', contact, kind: 'joined', attempts, doubt }
  return judgeFailure(failure, delivery, { schedule, mayRepeat: () => mayRepeat }, blame, random)
}

const leavesDoubt = (failure: Failure) => failure === unclear || failure === halfDone

describe('what a failure means for a delivery', () => {
  for (const doubt of [false, true]) {
    for (const failure of failures) {
      const what = `${failure.why}, ${doubt ? 'in' : 'without'} doubt before`
      const doubtAfter = doubt || leavesDoubt(failure)
      const { why } = failure

      if (failure !== notSent) {
        test(`${what}, while others succeed: it waits for its next attempt, and is abandoned after the last`, () => {
          for (const [attempts, wait] of [
            [0, 5_000],
            [5, 36_000_000],
          ] as const) {
            assert.deepEqual(settled(failure, { attempts, doubt }), {
              is: 'retry',
              wait,
              doubt: doubtAfter,
              why,
              counts: true,
            })
          }
          for (const attempts of [9, 10, 100]) {
            const expected: Settlement = { is: 'abandoned', why: `${why}; that was the last attempt` }
            assert.deepEqual(settled(failure, { attempts, doubt }), expected)
          }
          const handOver = settled(failure, { attempts: 1_000, doubt, schedule: handOverSchedule })
          assert.deepEqual(handOver, { is: 'retry', wait: 86_400_000, doubt: doubtAfter, why, counts: true })
        })

        test(`${what}, during an outage: due again within half a minute, uncounted, however many attempts`, () => {
          for (const schedule of [eventSchedule, handOverSchedule]) {
            for (const attempts of [0, 5, 9, 50]) {
              const settlement = settled(failure, { attempts, doubt, schedule, blame: 'destination' })
              assert.ok(settlement.is === 'retry' && settlement.wait <= 25_000)
              const { wait, ...rest } = settlement
              assert.deepEqual(rest, { is: 'retry', doubt: doubtAfter, why, counts: false })
              if (attempts >= 5) assert.equal(wait, 20_000)
            }
          }
        })
      }

      test(`${what}, where a second one would not be recognised: it is abandoned if it may have arrived`, () => {
        for (const blame of ['destination', 'delivery'] as const) {
          const settlement = settled(failure, { doubt, blame, mayRepeat: false })
          assert.equal(settlement.is, leavesDoubt(failure) ? 'abandoned' : 'retry')
          if (settlement.is === 'retry') assert.equal(settlement.doubt, doubt)
          else assert.match((settlement as { why: string }).why, new RegExp(`^${why}; it may have arrived`))
        }
      })
    }

    test(`its rest was not sent, ${doubt ? 'in' : 'without'} doubt before: it has its turn soon, uncounted, in doubt`, () => {
      const expected: Settlement = { is: 'retry', wait: 5_000, doubt: true, why: restNotSent.why, counts: false }
      for (const blame of ['destination', 'delivery'] as const) {
        assert.deepEqual(settled(restNotSent, { attempts: 9, doubt, blame }), expected)
      }
    })

    test(`nothing was sent, ${doubt ? 'in' : 'without'} doubt before: it has its turn soon, uncounted`, () => {
      for (const attempts of [0, 5, 9, 50]) {
        for (const blame of ['destination', 'delivery'] as const) {
          const expected: Settlement = { is: 'retry', wait: 5_000, doubt, why: notSent.why, counts: false }
          assert.deepEqual(settled(notSent, { attempts, doubt, blame }), expected)
        }
      }
    })
  }

  test('no stored wait is longer than the longest, whatever the failure', () => {
    const far: readonly Failure[] = [
      { is: 'unreached', why: '429', retryAfter: 1e12 },
      { is: 'unclear', why: '503', retryAfter: 1e12 },
    ]
    const waits = [...failures, ...far].flatMap(failure =>
      [handOverSchedule, eventSchedule].flatMap(schedule =>
        (['destination', 'delivery'] as const).flatMap(blame =>
          Array.from({ length: 31 }, (_, attempts) => {
            const settlement = settled(failure, { attempts, schedule, blame, random: 1 })
            return settlement.is === 'retry' ? settlement.wait : 0
          }),
        ),
      ),
    )
    assert.equal(Math.max(...waits), 1.2 * 86_400_000)
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Counts, MINUTE, QUARTER, statsOf } from '../../src/store/stats.ts'

const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const none = {
  contacts: { unconfirmed: 0, pending: 1, listed: 2, held: 0, invited: 0 },
  redeemed: 0,
  held: [],
  sources: [],
  sourced: 0,
  deliveries: [],
} as const

/** What a store counts of signups at these times. */
function countsOf(at: number, times: readonly number[]): Counts {
  const minutes = Math.floor((at - 120 * MINUTE) / QUARTER) * QUARTER
  const spans = Map.groupBy(times, time => time - (time % (time < minutes ? QUARTER : MINUTE)))
  const signups = [...spans]
    .map(([from, all]) => ({
      from: new Date(from),
      count: all.length,
    }))
    .toSorted((a, b) => a.from.getTime() - b.from.getTime())
  return { at: new Date(at), signups, ...none }
}

/** What the figures are where the process is in this time zone. */
function statsIn(timezone: string, counts: Counts) {
  process.env.TZ = timezone
  return statsOf(counts)
}

/** What a calendar says, as the runtime knows it. */
function wall(timezone: string) {
  const day = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' })
  return (time: number) => day.format(time)
}

/** Clocks are set at night and at midnight, by an hour and by half of one; some are apart from UTC by quarters of an hour. */
const zones = ['UTC', 'Europe/Berlin', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Africa/Cairo']

describe('what counts amount to', () => {
  test('a signup is of the day that the calendar of the time zone says, whatever was done to its clocks', () => {
    const at = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2027, 11, 31) })
    const ages = fc.array(fc.integer({ min: 0, max: 32 * DAY - QUARTER }), { maxLength: 30 })
    fc.assert(
      fc.property(fc.constantFrom(...zones), at, ages, (timezone, at, ages) => {
        const dayOf = wall(timezone)
        const times = ages.map(age => at - age)
        const { perDay, today, last7Days, last30Days } = statsIn(timezone, countsOf(at, times))
        assert.equal(perDay.length, 30)
        assert.equal(perDay.at(-1)!.day, dayOf(at))
        for (const { day, from, count } of perDay) {
          assert.equal(dayOf(from.getTime()), day)
          assert.notEqual(dayOf(from.getTime() - 1), day)
          assert.equal(times.filter(time => dayOf(time) === day).length, count, `${day} in ${timezone}`)
        }
        const ofDays = (days: number) => {
          const names = perDay.slice(-days).map(({ day }) => day)
          return times.filter(time => names.includes(dayOf(time))).length
        }
        assert.deepEqual([today, last7Days, last30Days], [ofDays(1), ofDays(7), ofDays(30)])
      }),
      { numRuns: 300 },
    )
  })

  test('hours begin as on the wall, and the last hour and minute are under way', () => {
    const at = Date.parse('2026-11-22T15:13:55.304Z')
    const times = [at, at - MINUTE, at - 59 * MINUTE, at - 60 * MINUTE, at - 47 * HOUR]
    const { perMinute, perHour } = statsIn('Asia/Kathmandu', countsOf(at, times))
    assert.equal(perMinute.length, 60)
    assert.deepEqual(perMinute.at(-1), { from: new Date('2026-11-22T15:13:00Z'), count: 1 })
    assert.deepEqual(
      perMinute.filter(({ count }) => count > 0).map(({ from }) => (at - (at % MINUTE) - from.getTime()) / MINUTE),
      [59, 1, 0],
    )
    assert.equal(perHour.length, 48)
    // 20:58 there.
    assert.deepEqual(perHour.at(-1), { from: new Date('2026-11-22T14:15:00Z'), count: 2 })
    assert.deepEqual(perHour.at(-2), { from: new Date('2026-11-22T13:15:00Z'), count: 2 })
    assert.equal(perHour[0]!.count, 1)
  })

  test('what a clock that is a little ahead has stored is of now', () => {
    const at = Date.parse('2026-11-22T23:59:50Z')
    const { today, perMinute, perHour, last30Days } = statsIn('UTC', countsOf(at, [at + 30_000]))
    assert.deepEqual([today, last30Days, perMinute.at(-1)!.count, perHour.at(-1)!.count], [1, 1, 1, 1])
  })
})

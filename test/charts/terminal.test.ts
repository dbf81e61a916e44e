import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ticks } from '../../src/charts/axis.ts'
import { report } from '../../src/charts/terminal.ts'
import { cells } from '../../src/charts/text.ts'
import { type Stats, statsOf } from '../../src/waitlist/alerts/counts.ts'

/** What is counted in the last hours, one number each, with one source and one destination. */
function statsIn(hours: readonly number[], source = 'hn', why = 'HTTP 503', invited = 0): Stats {
  const at = new Date('2026-11-22T15:13:00Z')
  const hour = 3_600_000
  const signups = hours.map((count, i) => ({
    from: new Date(at.getTime() - 13 * 60_000 - (hours.length - 1 - i) * hour),
    length: 900_000,
    count,
  }))
  const sum = hours.reduce((sum, count) => sum + count, 0)
  const loops = { destination: 'loops', oldest: null, why: null }
  const counts = {
    at,
    contacts: { unconfirmed: 0, pending: 2, listed: sum, held: 1_234, invited },
    redeemed: invited,
    held: [],
    signups: signups.filter(({ count }) => count > 0),
    sources: [{ source, count: 7 }],
    sourced: 9,
    deliveries: [
      { ...loops, state: 'waiting', count: 2, oldest: new Date(at.getTime() - 3 * hour), why },
      { ...loops, state: 'delivered', count: 1_000 },
      { ...loops, state: 'abandoned', count: 1, why: 'HTTP 404' },
    ],
  } as const
  return statsOf(counts, 'UTC')
}

const paint = (_: string, text: string) => text

describe('the list on a terminal', () => {
  test('fits its width, whatever strangers and vendors wrote', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 120 })
    const counts = fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 40 })
    fc.assert(
      fc.property(
        fc.integer({ min: 60, max: 200 }),
        counts,
        text,
        text,
        fc.nat(),
        (width, bars, source, why, invited) => {
          const lines = report(source, statsIn(bars, source, why, invited), { width, paint })
          for (const line of lines) {
            assert.ok(cells(line) <= width, `${cells(line)} in ${width}: ${line}`)
            assert.doesNotMatch(line, /[\p{Cc}\p{Cf}]/u)
          }
        },
      ),
      { numRuns: 30 },
    )
  })

  test('has a chart with round numbers and times on its axes', () => {
    const lines = report('Acme', statsIn([0, 10, 5, 0, 1]), { width: 80, paint })
    assert.match(lines[0]!, /^Acme +22 Nov 2026, 15:13 UTC$/)
    const from = lines.indexOf('Signups per hour, the last 48 hours')
    assert.deepEqual(
      lines.slice(from + 1, from + 9).map(line => line.trimEnd()),
      [
        `10 ┤${' '.repeat(44)}█`,
        `   │${' '.repeat(44)}█`,
        `   │${' '.repeat(44)}█`,
        ` 5 ┤${' '.repeat(44)}██`,
        `   │${' '.repeat(44)}██`,
        `   │${' '.repeat(44)}██ ▅`,
        ` 0 └────────┬───────────┬───────────┬───────────┬───`,
        `            21 Nov      12:00       22 Nov      12:00`,
      ],
    )
  })

  test('says what waits and why, and what was abandoned', () => {
    const lines = report('Acme', statsIn([3], 'hn', 'HTTP 401: \u001b[31mno\u202e\n key'), { width: 80, paint })
    const from = lines.findIndex(line => line.startsWith('Deliveries'))
    assert.deepEqual(
      lines.slice(from).map(line => line.replaceAll(/ +/g, ' ')),
      [
        'Deliveries waiting delivered abandoned',
        'loops 2 1,000 1',
        ' waiting, the oldest for 3 h: HTTP 401: [31mno key',
        ' abandoned: HTTP 404',
      ],
    )
  })
})

test('the numbers of an axis are round, begin at 0 and end above the largest', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2_000_000_000 }), fc.integer({ min: 2, max: 6 }), (most, about) => {
      const scale = ticks(most, about)
      assert.equal(scale[0], 0)
      assert.ok(scale.at(-1)! >= most && scale.length >= 2 && scale.length <= about + 1)
      for (const tick of scale) assert.match(String(tick / 10 ** Math.floor(Math.log10(scale[1]!))), /^\d\d?$/)
    }),
  )
})

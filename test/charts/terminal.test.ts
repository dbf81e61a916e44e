import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stripVTControlCharacters, styleText } from 'node:util'
import fc from 'fast-check'
import { duration, ticks } from '../../src/charts/axis.ts'
import { report } from '../../src/charts/terminal.ts'
import { cells } from '../../src/charts/text.ts'
import { statsIn } from './figures.ts'

const paint = (_: string, text: string) => text

describe('the list on a terminal', () => {
  test('fits its width, whatever strangers and vendors wrote', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 120 })
    const counts = fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 40 })
    fc.assert(
      fc.property(fc.integer({ min: 60, max: 200 }), counts, text, text, (width, bars, source, why) => {
        const lines = report(source, statsIn(bars, source, why), { width, paint })
        for (const line of lines) {
          assert.ok(cells(line) <= width, `${cells(line)} in ${width}: ${line}`)
          assert.doesNotMatch(line, /[\p{Cc}\p{Cf}]/u)
        }
      }),
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

  test('is shown on a narrow terminal in a time zone with a long name', () => {
    const stats = { ...statsIn([1]), timezone: 'America/Argentina/Buenos_Aires' }
    const [line] = report('Acme', stats, { width: 20, paint })
    assert.equal(line, 'Acme        22 Nov 2026, 12:13 America/…')
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

  test('says the same in colour', () => {
    const stats = statsIn([1, 2, 3], 'hn', 'HTTP 503')
    const plain = report('Acme', stats, { width: 80, paint })
    const coloured = report('Acme', stats, {
      width: 80,
      paint: (style, text) => styleText(style, text, { validateStream: false }),
    })
    assert.notDeepEqual(coloured, plain)
    assert.deepEqual(coloured.map(stripVTControlCharacters), plain)
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

test('ages are told in one unit', () => {
  assert.deepEqual([-5, 90_000, 600_000, 3 * 3_600_000, 50 * 86_400_000].map(duration), [
    '0 s',
    '90 s',
    '10 min',
    '3 h',
    '50 days',
  ])
})

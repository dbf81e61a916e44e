import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { retryAfter } from '../../src/outbound/reply.ts'

const now = Date.parse('2026-11-21T12:00:00.250Z')
const YEAR = 365 * 86_400_000

const cases: readonly [text: string, milliseconds: number | undefined][] = [
  ['0', 0],
  ['5', 5_000],
  [' 120 ', 120_000],
  ['1.5', 1_500],
  ['0.0001', 1],
  ['86401', 86_401_000],
  ['31536001', YEAR],
  ['999999999', YEAR],
  ['Sat, 21 Nov 2026 12:00:10 GMT', 9_750],
  ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ['Saturday, 21-Nov-26 12:00:10 GMT', 9_750],
  ['2026-11-21T12:00:10Z', 9_750],
  ['Wed, 21 Oct 2060 07:28:00 GMT', YEAR],
  ['1795262410', 9_750],
  ['1795262410.5', 10_250],
  ['1000000001', 0],
  ['', undefined],
  ['-5', undefined],
  ['+5', undefined],
  ['5, 5', undefined],
  ['5 seconds', undefined],
  ['1e3', undefined],
  ['0x10', undefined],
  ['12345678901', undefined],
  ['soon', undefined],
  ['soon: 5', undefined],
  ['NaN', undefined],
  ['Infinity', undefined],
]

describe('how long an answer asks us to wait', () => {
  for (const [text, milliseconds] of cases) {
    test(`${JSON.stringify(text)}: ${milliseconds} ms`, () => {
      assert.equal(retryAfter({ 'retry-after': text }, ['retry-after'], now), milliseconds)
    })
  }

  test('the first field that makes sense counts', () => {
    const answer = { 'retry-after': 'soon', 'ratelimit-reset': '7', 'x-reset': '9' }
    assert.equal(retryAfter(answer, ['missing', 'retry-after', 'ratelimit-reset', 'x-reset'], now), 7_000)
    assert.equal(retryAfter(answer, [], now), undefined)
    assert.equal(retryAfter({}, ['retry-after'], now), undefined)
  })

  test('whatever stands there, it is nothing or whole milliseconds, at most a year', () => {
    const text = fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String), fc.nat().map(String))
    fc.assert(
      fc.property(text, value => {
        const wait = retryAfter({ a: value }, ['a'])
        assert.ok(wait === undefined || (Number.isInteger(wait) && wait >= 0 && wait <= YEAR), String(wait))
      }),
      { numRuns: 2_000 },
    )
  })
})

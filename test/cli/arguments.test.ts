import assert from 'node:assert/strict'
import { test } from 'node:test'
import { moment } from '../../src/cli/arguments.ts'

test('a time is a date, a time in UTC or with an offset, or so long ago', () => {
  assert.equal(moment('2028-02-29').toISOString(), '2028-02-29T00:00:00.000Z')
  assert.equal(moment('2026-11-22T09:30').toISOString(), '2026-11-22T09:30:00.000Z')
  assert.equal(moment('2026-11-22T09:30:01.5+05:30').toISOString(), '2026-11-22T04:00:01.500Z')
  assert.ok(Math.abs(Date.now() - 86_400_000 - moment('24h').getTime()) < 60_000)
  assert.ok(Math.abs(moment('1d').getTime() - moment('24h').getTime()) < 60_000)
})

test('a day that does not exist is refused, rather than taken for one of the next month', () => {
  for (const day of ['2026-02-31', '2027-02-29', '2026-04-31', '2026-02-30T09:30Z', '2026-06-31T09:30+02:00']) {
    assert.throws(() => moment(day), /There is no such day\./, day)
  }
  for (const text of ['2026-13-01', '2026-12-32', '2026-11-22T25:00', 'yesterday', '11/22/2026', '']) {
    assert.throws(() => moment(text), /It must be a time such as/, text)
  }
})

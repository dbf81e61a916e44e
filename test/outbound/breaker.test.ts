import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { breaker } from '../../src/outbound/breaker.ts'

function broken() {
  const clock = { now: 1_000 }
  const { isOpen, begin, note } = breaker(() => clock.now)
  const call = (answered: boolean): boolean => {
    if (isOpen()) return false
    begin()
    note(answered)
    return true
  }
  return { clock, isOpen, begin, note, call }
}

describe('the circuit breaker', () => {
  test('opens after five calls in a row without an answer, and lets one through in five seconds', () => {
    const { clock, call } = broken()
    assert.deepEqual(
      Array.from({ length: 7 }, () => call(false)),
      [true, true, true, true, true, false, false],
    )
    for (let i = 0; i < 3; i++) {
      clock.now += 4_999
      assert.equal(call(false), false)
      clock.now += 1
      assert.equal(call(false), true, 'one looks whether it is over')
      assert.equal(call(false), false)
    }
  })

  test('while that one is under way nobody else goes', () => {
    const { clock, isOpen, begin, call } = broken()
    for (let i = 0; i < 5; i++) call(false)
    clock.now += 5_000
    assert.equal(isOpen(), false)
    begin()
    assert.equal(isOpen(), true)
  })

  test('closes at the first answer, and then takes five again', () => {
    const { clock, call, isOpen } = broken()
    for (let i = 0; i < 5; i++) call(false)
    clock.now += 5_000
    assert.equal(call(true), true)
    for (let i = 0; i < 5; i++) assert.equal(call(false), true)
    assert.equal(isOpen(), true)
  })

  test('an answer that comes late closes it too', () => {
    const { call, note, isOpen } = broken()
    for (let i = 0; i < 5; i++) call(false)
    note(true)
    assert.equal(isOpen(), false)
  })

  test('in every history: open only after five failures in a row, and never for longer than five seconds', () => {
    const events = fc.array(fc.oneof(fc.boolean(), fc.integer({ min: 1, max: 6_000 })), { maxLength: 60 })
    fc.assert(
      fc.property(events, history => {
        const { clock, call, isOpen } = broken()
        let inARow = 0
        let lastCall = 0
        for (const event of history) {
          if (typeof event === 'number') clock.now += event
          else if (call(event)) {
            inARow = event ? 0 : inARow + 1
            lastCall = clock.now
          }
          assert.equal(isOpen(), inARow >= 5 && clock.now < lastCall + 5_000)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

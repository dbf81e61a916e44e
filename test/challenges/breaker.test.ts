import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifierBreaker } from '../../src/challenges/breaker.ts'

test('pauses double up to half a minute, with one probe each, and an answer ends them', () => {
  let now = 0
  const { begin } = verifierBreaker(() => now)
  for (let i = 0; i < 3; i++) begin()!.ended(false)
  const pauses: number[] = []
  for (let i = 0; i < 7; i++) {
    const from = now
    assert.equal(begin(), null)
    let permit = begin()
    for (; permit === null; permit = begin()) now += 500
    pauses.push(now - from)
    assert.equal(begin(), null, 'the probe may hang, so nobody else waits')
    permit.ended(false)
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  now += 30_000
  begin()!.ended(true)
  assert.ok(begin() !== null && begin() !== null)
})

test('calls that were under way together and fail together begin one pause', () => {
  let now = 0
  const { begin } = verifierBreaker(() => now)
  const turns = Array.from({ length: 64 }, () => begin()!)
  for (const { ended } of turns) ended(false)
  assert.equal(begin(), null)
  now = 1_000
  assert.notEqual(begin(), null)
})

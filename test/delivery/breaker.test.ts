import assert from 'node:assert/strict'
import { test } from 'node:test'
import { breaker, type Outage } from '../../src/delivery/breaker.ts'
import type { Failure } from '../../src/http-client/call.ts'
import { keptLog } from '../harness/log.ts'

const why = 'as the test wants it'
const failures = {
  x: { is: 'unreachable', why },
  d: { is: 'in doubt', why },
  m: { is: 'misconfigured', why },
  '7': { is: 'rate limited', why, retryAfter: 7_000 },
  D: { is: 'rate limited', why, retryAfter: 86_400_000 },
} as const satisfies Record<string, Failure>

/**
 * What happens, one after the other: a failure as above, or `o`, a success. Then how many of 16 deliveries may be attempted,
 * and from what millisecond on one may; what visitors do not wait for; and the outages that were reported.
 */
const rows: readonly (readonly [
  history: string,
  permits: number,
  probeAt: number,
  Outage | null,
  (Outage | null)[],
])[] = [
  ['xxxx', 16, 0, null, []],
  ['xxxxoxxxx', 16, 0, null, []],
  ['xdxdx', 0, 1_000, 'unreachable', ['unreachable']],
  ['xxxxxx', 0, 2_000, 'unreachable', ['unreachable']],
  [`xxxxx${'x'.repeat(20)}`, 0, 120_000, 'unreachable', ['unreachable']],
  ['xxxxxxo', 16, 0, null, ['unreachable', null]],
  ['m', 0, 1_000, null, []],
  ['mo', 16, 0, null, []],
  ['mm', 0, 2_000, 'misconfigured', ['misconfigured']],
  ['7', 0, 7_000, null, []],
  ['7o', 16, 0, null, []],
  ['D', 0, 60_000, null, []],
  ['77777', 0, 16_000, 'unreachable', ['unreachable']],
]

const breakerOf = (onOutage: (outage: Outage | null) => void) =>
  breaker({ name: 'fake', label: 'the fake', longestPause: 120_000, log: keptLog().log, onOutage })

for (const [history, permits, probeAt, refusal, reported] of rows) {
  test(`after ${history}: ${permits} of 16, a probe after ${probeAt} ms; reported: ${reported}`, t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const changes: (Outage | null)[] = []
    const state = breakerOf(outage => changes.push(outage))
    for (const each of history) {
      if (each === 'o') state.succeed()
      else state.fail(failures[each as keyof typeof failures])
    }
    assert.deepEqual([state.permits(16), state.refusal(), changes], [permits, refusal, reported])
    assert.equal(state.outage(), refusal)
    if (probeAt === 0) return
    now = probeAt - 1
    assert.equal(state.permits(16), 0)
    now = probeAt
    assert.deepEqual([state.permits(16), state.refusal()], [1, null])
    // It may hang.
    state.begin()
    assert.equal(state.permits(16), 0)
  })
}

test('a failure counts against the delivery only while the destination is not at fault', () => {
  const state = breakerOf(() => {})
  const blamed = [failures.x, failures['7'], failures.x, failures.m].map(state.fail)
  assert.deepEqual(blamed, [false, true, true, true])
})

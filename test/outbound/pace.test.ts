import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Clock, type Leave, pace, type Rate } from '../../src/outbound/pace.ts'

/** Time that passes only when it is told to, with everything that is to happen in it. */
function steppedTime() {
  let now = 0
  let plan: { readonly at: number; readonly run: () => void }[] = []
  const at = (time: number, run: () => void) => {
    const entry = { at: time, run }
    plan.push(entry)
    return () => {
      plan = plan.filter(each => each !== entry)
    }
  }
  return {
    at,
    now: () => now,
    /** Lets everything happen, each at its time; `look` comes when all that follows from it at once is done. */
    async pass(look: () => void): Promise<void> {
      while (plan.length > 0) {
        const next = plan.reduce((a, b) => (b.at < a.at ? b : a))
        plan = plan.filter(each => each !== next)
        now = Math.max(now, next.at)
        next.run()
        await new Promise(resolve => setImmediate(resolve))
        look()
      }
    },
  }
}

interface Visit {
  /** Milliseconds since the visit before. */
  readonly later: number
  readonly patience: number
  readonly lasts: number
}

const rates = fc.record({
  calls: fc.integer({ min: 1, max: 6 }),
  per: fc.constantFrom(10, 100, 1_000),
  connections: fc.integer({ min: 1, max: 4 }),
})
const visits = fc.array(
  fc.record<Visit>({
    later: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 1_500 })),
    patience: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 20_000 })),
    lasts: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })),
  }),
  { maxLength: 40 },
)

/** What one pattern of arrivals leads to, with every promise looked at whenever anything has happened. */
async function history(rate: Rate, room: number, pattern: readonly Visit[]): Promise<void> {
  const time = steppedTime()
  let timers = 0
  const clock: Clock = {
    now: time.now,
    after(wait, run) {
      timers++
      const forget = time.at(time.now() + wait, () => {
        timers--
        run()
      })
      return () => {
        timers--
        forget()
      }
    },
  }
  const { enter } = pace(rate, room, clock)
  const begun: { readonly at: number; readonly visit: number }[] = []
  let waiting = 0
  let underWay = 0
  let over = 0

  const arrive = async (visit: number, { patience, lasts }: Visit) => {
    const deadline = new AbortController()
    const arrived = time.now()
    time.at(arrived + patience, () => deadline.abort())
    const wasFull = waiting === room
    waiting++
    const leave: Leave | null = await enter(deadline.signal)
    waiting--
    assert.ok(time.now() <= arrived + patience, 'nobody waits past the deadline')
    over++
    if (leave === null) {
      if (!deadline.signal.aborted) assert.ok(wasFull, 'nobody is refused while there is room')
      return
    }
    underWay++
    begun.push({ at: time.now(), visit })
    time.at(time.now() + lasts, () => {
      underWay--
      leave()
      leave()
    })
  }

  let moment = 0
  for (const [i, visit] of pattern.entries()) {
    moment += visit.later
    time.at(moment, () => void arrive(i, visit))
  }
  await time.pass(() => {
    assert.ok(underWay <= rate.connections, 'no more at once than allowed')
    assert.ok(waiting <= room, 'no more wait than there is room for')
    if (waiting === 0) return assert.equal(timers, 0, 'a timer for nobody')
    const first = begun.at(-rate.calls)
    const full = first !== undefined && begun.length >= rate.calls && time.now() < first.at + rate.per * 1.05 + 1
    assert.ok(underWay === rate.connections || full, 'somebody waits although a call may begin')
  })
  assert.equal(over, pattern.length, 'everybody is told')
  for (const [i, { at }] of begun.slice(rate.calls).entries()) {
    assert.ok(at - begun[i]!.at >= rate.per, `${rate.calls + 1} calls began within ${at - begun[i]!.at} ms`)
  }
  const order = begun.map(({ visit }) => visit)
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
    'in order of arrival',
  )
}

describe('the pace of calls', { timeout: 60_000 }, () => {
  test('whatever the rate and whoever arrives when, every promise holds', async () => {
    await fc.assert(fc.asyncProperty(rates, fc.integer({ min: 1, max: 12 }), visits, history), { numRuns: 1_000 })
  })

  test('one second full of calls, then the next', () =>
    history({ calls: 6, per: 1_000, connections: 4 }, 40, Array(40).fill({ later: 0, patience: 60_000, lasts: 1 })))

  test('with the real clock', async () => {
    const { enter } = pace({ calls: 5, per: 50, connections: 3 }, 20)
    const start = performance.now()
    const visit = async () => (await enter(AbortSignal.timeout(20_000)))?.()
    await Promise.all(Array.from({ length: 20 }, visit))
    assert.ok(performance.now() - start >= 150, 'the last five began three periods after the first')
  })

  test('nothing of it keeps a process alive when nobody waits any more', async () => {
    const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
    const { enter } = pace({ calls: 1, per: 1_000_000, connections: 3 }, 20)
    const before = timers()
    ;(await enter(AbortSignal.timeout(20_000)))?.()
    const deadline = new AbortController()
    const asked = [enter(deadline.signal), enter(deadline.signal)]
    assert.equal(timers(), before + 1)
    deadline.abort()
    assert.deepEqual(await Promise.all(asked), [null, null])
    assert.equal(timers(), before)
  })

  test('a deadline that is over already', async () => {
    assert.equal(await pace({ calls: 1, per: 1, connections: 1 }, 1).enter(AbortSignal.abort()), null)
  })
})

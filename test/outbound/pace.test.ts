import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Clock, MARGIN, pace, type Rank, type Rate, type Release } from '../../src/outbound/pace.ts'

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

const ranks: readonly Rank[] = ['continues', 'visitor', 'backlog']

interface Visit {
  /** Milliseconds since the visit before. */
  readonly later: number
  /** Milliseconds until its process stops. */
  readonly stays: number
  readonly longest: number
  readonly rank: Rank
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
    stays: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constant(1_000_000)),
    longest: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 20_000 })),
    rank: fc.constantFrom(...ranks),
    lasts: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })),
  }),
  { maxLength: 40 },
)

/** What one pattern of arrivals leads to, with every promise looked at whenever anything has happened. */
async function history(rate: Rate, pattern: readonly Visit[]): Promise<void> {
  const time = steppedTime()
  const timers = new Set<object>()
  const clock: Clock = {
    now: time.now,
    after(wait, run) {
      const timer = {}
      timers.add(timer)
      const forget = time.at(time.now() + wait, () => {
        timers.delete(timer)
        run()
      })
      return () => {
        timers.delete(timer)
        forget()
      }
    },
  }
  const window = rate.per * MARGIN
  const { enter } = pace(rate, clock)
  const begun: { readonly at: number; readonly visit: number; readonly rank: Rank }[] = []
  const waiting = new Map<number, Rank>()
  let underWay = 0
  let over = 0

  /** When a call could begin that has so many before it, if there were connections enough and none lasted. */
  function earliest(ahead: number): number {
    const times = begun.map(({ at }) => at)
    for (let i = 0; i <= ahead; i++) times.push(Math.max(time.now(), (times.at(-rate.calls) ?? -Infinity) + window))
    return times.at(-1)!
  }

  const arrive = async (visit: number, { stays, longest, rank, lasts }: Visit) => {
    const stop = new AbortController()
    const arrived = time.now()
    const before = [...waiting.values()].filter(each => ranks.indexOf(each) <= ranks.indexOf(rank)).length
    const turn = earliest(before)
    time.at(arrived + stays, () => stop.abort())
    waiting.set(visit, rank)
    const release: Release | null = await enter({ longest, rank, over: stop.signal })
    waiting.delete(visit)
    const waited = time.now() - arrived
    assert.ok(waited <= Math.min(longest, stays), 'nobody waits for longer than allowed')
    over++
    if (release === null) {
      if (waited < Math.min(longest, stays))
        assert.ok(turn > arrived + longest, 'only who would wait in vain is refused')
      return
    }
    const first = [...waiting.values()].every(each => ranks.indexOf(each) >= ranks.indexOf(rank))
    assert.ok(first, 'those who continue go first, then visitors')
    underWay++
    begun.push({ at: time.now(), visit, rank })
    time.at(time.now() + lasts, () => {
      underWay--
      release()
      release()
    })
  }

  let moment = 0
  for (const [i, visit] of pattern.entries()) {
    moment += visit.later
    time.at(moment, () => void arrive(i, visit))
  }
  await time.pass(() => {
    assert.ok(underWay <= rate.connections, 'no more at once than allowed')
    if (waiting.size === 0) return assert.equal(timers.size, 0, 'a timer for nobody')
    const first = begun.at(-rate.calls)
    const full = first !== undefined && begun.length >= rate.calls && time.now() < first.at + window + 1
    const share = Math.ceil(rate.calls / 5)
    const last = begun.at(-share)?.at ?? Number.NEGATIVE_INFINITY
    const isEnough = time.now() < last + (window * share) / rate.calls + 1
    const isBacklog = [...waiting.values()].every(each => each === 'backlog')
    const mayWait = underWay === rate.connections || full || (isBacklog && isEnough)
    assert.ok(mayWait, 'somebody waits although a call may begin')
  })
  assert.equal(over, pattern.length, 'everybody is told')
  for (const [i, { at }] of begun.slice(rate.calls).entries()) {
    assert.ok(at - begun[i]!.at >= rate.per, `${rate.calls + 1} calls began within ${at - begun[i]!.at} ms`)
  }
  for (const kind of ranks) {
    const order = begun.filter(({ rank }) => rank === kind).map(({ visit }) => visit)
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      'each rank in order of arrival',
    )
  }
}

describe('the pace of calls', () => {
  test('whatever the rate and whoever arrives when, every promise holds', async () => {
    await fc.assert(fc.asyncProperty(rates, visits, history), { numRuns: 1_000 })
  })

  const patient = { longest: 60_000, rank: 'backlog', over: new AbortController().signal } as const

  test('asked for more than it allows, a vendor still completes what it begins', async () => {
    const time = steppedTime()
    const clock: Clock = { now: time.now, after: (wait, run) => time.at(time.now() + wait, run) }
    const { enter } = pace({ calls: 2, per: 1_000, connections: 2 }, clock)
    let [begun, completed] = [0, 0]
    const work = async () => {
      const over = new AbortController().signal
      const first = await enter({ longest: 5_000, rank: 'backlog', over })
      if (first === null) return
      begun++
      first()
      const second = await enter({ longest: 8_000, rank: 'continues', over })
      second?.()
      if (second !== null) completed++
    }
    // Four times as much work as there is room for, for a minute.
    for (let at = 0; at < 60_000; at += 250) time.at(at, () => void work())
    await time.pass(() => {})
    assert.ok(begun >= 50, `${begun} were begun`)
    assert.equal(completed, begun)
  })

  test('a visitor waits for a fraction of the time behind any backlog, which still has all turns that are left', async () => {
    const time = steppedTime()
    const clock: Clock = { now: time.now, after: (wait, run) => time.at(time.now() + wait, run) }
    const { enter } = pace({ calls: 10, per: 1_000, connections: 10 }, clock)
    const over = new AbortController().signal
    const waits: number[] = []
    let calls = 0
    const call = async (rank: Rank) => {
      const since = time.now()
      const release = await enter({ longest: 5_000, rank, over })
      assert.ok(release !== null)
      calls++
      if (rank === 'visitor') waits.push(time.now() - since)
      time.at(time.now() + 100, release)
    }
    const work = async () => {
      while (time.now() < 20_000) await call('backlog')
    }
    time.at(0, () => void Promise.all(Array.from({ length: 12 }, work)))
    for (let at = 2_000; at < 20_000; at += 333) time.at(at, () => void call('visitor'))
    await time.pass(() => {})
    assert.ok(Math.max(...waits) <= 220, `${Math.max(...waits)} ms`)
    assert.ok(calls >= 185, `${calls} calls in 20 s`)
  })

  test('a process that stops already', async () => {
    assert.equal(
      await pace({ calls: 1, per: 1, connections: 1 }).enter({ ...patient, over: AbortSignal.abort() }),
      null,
    )
  })
})

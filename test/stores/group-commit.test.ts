import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Bounds, groupCommit } from '../../src/stores/group-commit.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'

/** A commit that the test finishes by hand, one call after the other. */
function handCommit() {
  const calls: {
    items: readonly number[]
    finish: (answers?: readonly string[]) => void
    fail: (e: Error) => void
  }[] = []
  const arrivals: (() => void)[] = []
  return {
    calls,
    commit: (items: readonly number[]) =>
      new Promise<readonly string[]>((resolve, fail) => {
        calls.push({ items, finish: (answers = items.map(String)) => resolve(answers), fail })
        arrivals.shift()?.()
      }),
    async called(times: number) {
      while (calls.length < times) await new Promise<void>(resolve => arrivals.push(resolve))
      return calls[times - 1]!
    },
  }
}

const range = (length: number, from = 0) => Array.from({ length }, (_, i) => from + i)
const patient: Bounds = { batch: 256, queue: 10_000, timeout: 60_000 }
const unavailable = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StoreUnavailable)
  assert.match(error.message, sentence)
  return true
}

describe('natural batches', { concurrency: true, timeout: 60_000 }, () => {
  test('nobody is answered before the commit has', async () => {
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: patient })
    let answered = false
    const answer = batches.submit(1).then(() => {
      answered = true
    })
    const first = await called(1)
    await new Promise(resolve => setTimeout(resolve, 20))
    assert.equal(answered, false)
    first.finish()
    await answer
  })

  test('one more than the queue holds is refused at once; those before it are not', async () => {
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, queue: 5 } })
    const committing = batches.submit(0)
    const first = await called(1)
    const waiting = range(5, 1).map(item => batches.submit(item))
    await assert.rejects(batches.submit(6), unavailable(/too many signups are waiting/))
    first.finish()
    ;(await called(2)).finish()
    assert.deepEqual(await Promise.all([committing, ...waiting]), range(6).map(String))
    const later = batches.submit(7)
    ;(await called(3)).finish()
    assert.equal(await later, '7')
  })

  test('a commit that fails refuses exactly its batch', async () => {
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 2 } })
    const answers = range(6).map(item => batches.submit(item))
    const settled = Promise.allSettled(answers)
    ;(await called(1)).finish()
    ;(await called(2)).fail(new StoreUnavailable('full'))
    ;(await called(3)).finish()
    assert.deepEqual(
      (await settled).map(each => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message)),
      ['0', '1', 'full', 'full', '4', '5'],
    )
  })

  test('a commit slower than the timeout refuses all who wait, and newcomers until it ends', async () => {
    const { commit, called, calls } = handCommit()
    const batches = groupCommit(commit, { bounds: { batch: 2, queue: 100, timeout: 200 } })
    const early = range(4).map(item => batches.submit(item))
    await new Promise(resolve => setTimeout(resolve, 120))
    for (const each of await Promise.allSettled([...early, batches.submit(4)])) {
      assert.equal(each.status, 'rejected')
      assert.ok(each.reason instanceof StoreUnavailable)
    }
    await assert.rejects(batches.submit(5), unavailable(/does not answer/))
    calls[0]!.finish()
    await new Promise(resolve => setImmediate(resolve))
    const later = batches.submit(6)
    const second = await called(2)
    assert.deepEqual(second.items, [6], 'who was refused is not stored behind their back')
    second.finish()
    assert.equal(await later, '6')
  })

  test('drain answers everybody who was accepted and refuses the next', async () => {
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 2 } })
    const answers = range(5).map(item => batches.submit(item))
    let isDrained = false
    const drained = batches.drain().then(() => {
      isDrained = true
    })
    await assert.rejects(batches.submit(5), unavailable(/closing/))
    ;(await called(1)).finish()
    ;(await called(2)).finish()
    const last = await called(3)
    await new Promise(resolve => setTimeout(resolve, 10))
    assert.equal(isDrained, false)
    last.finish()
    await drained
    assert.deepEqual(await Promise.all(answers), range(5).map(String))
  })

  test('refuse tells everybody at once, during a commit that does not end too; a drain then waits for nobody', async () => {
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 2 } })
    const refused = Promise.all(
      range(5).map(item => assert.rejects(batches.submit(item), unavailable(/could not commit in time/))),
    )
    const hanging = await called(1)
    const drained = batches.drain()
    batches.refuse()
    await Promise.all([refused, drained, batches.drain()])
    await assert.rejects(batches.submit(5), unavailable(/closing/))
    hanging.finish()
  })
})

/** A clock that the test moves, timers included. Tests with it run one after the other. */
function clockOf(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  return {
    clock: () => now,
    pass(milliseconds: number) {
      now += milliseconds
      t.mock.timers.tick(milliseconds)
    },
    /** Time passes while the event loop is held up, and with it all timers. */
    delay(milliseconds: number) {
      now += milliseconds
    },
  }
}

describe('nobody waits longer than the timeout', { timeout: 60_000 }, () => {
  const bounds: Bounds = { batch: 1, queue: 100, timeout: 5_000 }
  /** What became of each so far. */
  function outcomes(answers: readonly Promise<string>[]) {
    const all: string[] = answers.map(() => 'waits')
    for (const [i, answer] of answers.entries()) {
      answer.then(
        () => {
          all[i] = 'answered'
        },
        ({ message }: Error) => {
          all[i] = message
        },
      )
    }
    return all
  }
  const soon = () => new Promise(resolve => setImmediate(() => setImmediate(resolve)))
  const refused = 'a signup was not stored within 5000 ms'

  test('nor in the queue and in its commit together', async t => {
    const { clock, pass } = clockOf(t)
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds, clock })
    const all = outcomes([batches.submit(0), batches.submit(1)])
    const first = await called(1)
    pass(3_000)
    first.finish()
    const second = await called(2)
    assert.deepEqual(second.items, [1])
    pass(1_999)
    await soon()
    assert.deepEqual(all, ['answered', 'waits'])
    pass(1)
    await soon()
    assert.deepEqual(all, ['answered', refused])
  })

  test('what has waited too long for its turn is not stored; the rest of the queue is', async t => {
    const { clock, delay } = clockOf(t)
    const { commit, called, calls } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...bounds, timeout: 50 }, clock })
    const answers = range(3).map(item => batches.submit(item))
    const first = await called(1)
    delay(60)
    answers.push(batches.submit(3))
    const all = outcomes(answers)
    first.finish()
    const second = await called(2)
    second.finish()
    await soon()
    const why = 'a signup was not stored within 50 ms'
    assert.deepEqual(all, ['answered', why, why, 'answered'])
    assert.deepEqual(
      calls.map(({ items }) => items),
      [[0], [3]],
    )
  })
})

describe('a queue is behind', { timeout: 60_000 }, () => {
  test('when its first has waited for more than 100 ms, until the queue is younger', async t => {
    const { clock, pass } = clockOf(t)
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: { batch: 2, queue: 100, timeout: 5_000 }, clock })
    const answers = range(4).map(item => batches.submit(item))
    const first = await called(1)
    pass(100)
    answers.push(...range(2, 4).map(item => batches.submit(item)))
    assert.equal(batches.isBehind(), false)
    pass(1)
    assert.equal(batches.isBehind(), true)
    first.finish()
    const second = await called(2)
    assert.equal(batches.isBehind(), false, 'its first now came 1 ms ago')
    second.finish()
    ;(await called(3)).finish()
    await Promise.all(answers)
  })

  test('not while the next commit takes all that wait, however slow the disk is', async t => {
    const { clock, pass } = clockOf(t)
    const { commit, called } = handCommit()
    const batches = groupCommit(commit, { bounds: { batch: 10, queue: 100, timeout: 5_000 }, clock })
    const answers = [batches.submit(0)]
    const first = await called(1)
    answers.push(...range(9, 1).map(item => batches.submit(item)))
    pass(1_000)
    assert.equal(batches.isBehind(), false)
    answers.push(batches.submit(10))
    assert.equal(batches.isBehind(), true)
    first.finish()
    ;(await called(2)).finish()
    await Promise.all(answers)
  })
})

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Bounds, groupCommit } from '../../src/stores/group-commit.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'

/** Commits that the test ends by hand, in the order in which they began; those to come end as they are told. */
function handCommit() {
  const begun: { items: readonly number[]; finish: () => void; fail: (error: Error) => void }[] = []
  const arrivals: (() => void)[] = []
  let free = false
  return {
    commit: (items: readonly number[]) =>
      new Promise<readonly string[]>((resolve, fail) => {
        const finish = () => resolve(items.map(String))
        begun.push({ items, finish, fail })
        if (free) finish()
        arrivals.shift()?.()
      }),
    stored: () => begun.flatMap(({ items }) => items),
    async first() {
      while (begun.length === 0) await new Promise<void>(resolve => arrivals.push(resolve))
      return begun[0]!
    },
    /** Ends all that are under way, and all that come. */
    finishAll() {
      free = true
      for (const { finish } of begun) finish()
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
const soon = () => new Promise(resolve => setImmediate(() => setImmediate(resolve)))

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

describe('group commit', () => {
  test('nobody is answered before the commit has, then everybody', async () => {
    const { commit, first, finishAll } = handCommit()
    const batches = groupCommit(commit, { bounds: patient })
    const answers = range(5).map(item => batches.submit(item))
    const all = outcomes(answers)
    await first()
    await soon()
    assert.ok(all.every(each => each === 'waits'))
    finishAll()
    assert.deepEqual(await Promise.all(answers), range(5).map(String))
  })

  test('what the queue does not hold is refused at once; those before it are not', async () => {
    const { commit, first, finishAll } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 1, queue: 5 } })
    const answers = [batches.submit(0)]
    await first()
    // As many as may be under way beside those that wait, and one more.
    const crowd = range(30, 1).map(item => batches.submit(item))
    const all = outcomes(crowd)
    await soon()
    const taken = all.indexOf('too many signups are waiting')
    assert.ok(taken >= 5, `${taken} were taken`)
    assert.ok(all.slice(taken).every(each => each !== 'waits'))
    finishAll()
    assert.equal((await Promise.all([...answers, ...crowd.slice(0, taken)])).length, taken + 1)
    assert.equal(await batches.submit(99), '99')
  })

  test('a commit that fails refuses those in it, and nobody else', async () => {
    const { commit, first, finishAll, stored } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 2 } })
    const all = outcomes(range(6).map(item => batches.submit(item)))
    const { items, fail } = await first()
    fail(new StoreUnavailable('full'))
    finishAll()
    while (stored().length < 6) await soon()
    await soon()
    assert.deepEqual(
      all,
      range(6).map(item => (items.includes(item) ? 'full' : 'answered')),
    )
  })

  test('close answers everybody who was accepted and refuses the next', async () => {
    const { commit, first, finishAll } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 2 } })
    const answers = range(5).map(item => batches.submit(item))
    let isDrained = false
    const drained = batches.drain().then(() => {
      isDrained = true
    })
    await assert.rejects(batches.submit(5), unavailable(/closing/))
    await first()
    await soon()
    assert.equal(isDrained, false)
    finishAll()
    await drained
    assert.deepEqual(await Promise.all(answers), range(5).map(String))
  })

  test('refuse tells everybody at once, also those whose commit does not end; a drain then waits for nobody', async () => {
    const { commit, first, finishAll } = handCommit()
    const batches = groupCommit(commit, { bounds: { ...patient, batch: 2 } })
    const refused = Promise.all(
      range(5).map(item => assert.rejects(batches.submit(item), unavailable(/could not commit in time/))),
    )
    await first()
    const drained = batches.drain()
    batches.refuse()
    await Promise.all([refused, drained, batches.drain()])
    await assert.rejects(batches.submit(5), unavailable(/closing/))
    finishAll()
  })
})

/** A clock that the test moves, timers included. */
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

describe('nobody waits longer than the timeout', () => {
  const bounds: Bounds = { batch: 1, queue: 100, timeout: 5_000 }
  const refused = 'a signup was not stored within 5000 ms'

  test('whether it is in a commit or in the queue; until the commit ends, nobody is taken', async t => {
    const { clock, pass } = clockOf(t)
    const { commit, first, finishAll, stored } = handCommit()
    const batches = groupCommit(commit, { bounds, clock })
    const all = outcomes(range(4).map(item => batches.submit(item)))
    await first()
    pass(4_900)
    await soon()
    assert.deepEqual(new Set(all), new Set(['waits']))
    pass(100)
    await soon()
    assert.deepEqual(new Set(all), new Set([refused]))
    await assert.rejects(batches.submit(5), unavailable(/does not answer/))
    const begun = stored()
    finishAll()
    await soon()
    assert.equal(await batches.submit(6), '6')
    assert.deepEqual(stored(), [...begun, 6], 'who was refused in the queue is not stored behind their back')
  })

  test('nor in the queue and in its commit together', async t => {
    const { clock, pass } = clockOf(t)
    const { commit, first } = handCommit()
    const batches = groupCommit(commit, { bounds, clock })
    const all = outcomes([batches.submit(0), batches.submit(1)])
    const { finish } = await first()
    pass(3_000)
    finish()
    await soon()
    pass(1_900)
    await soon()
    assert.deepEqual(all, ['answered', 'waits'])
    pass(100)
    await soon()
    assert.deepEqual(all, ['answered', refused])
  })

  test('what has waited too long for its turn is not stored; who came later is', async t => {
    const { clock, delay } = clockOf(t)
    const { commit, first, finishAll, stored } = handCommit()
    const batches = groupCommit(commit, { bounds, clock })
    const answers = range(30).map(item => batches.submit(item))
    await first()
    await soon()
    const begun = stored()
    delay(6_000)
    const all = outcomes([...answers, batches.submit(99)])
    finishAll()
    await soon()
    await soon()
    assert.equal(all.at(-1), 'answered')
    assert.ok(all.slice(begun.length, -1).every(each => each === refused))
    assert.deepEqual(stored(), [...begun, 99])
  })
})

test('a queue is behind when its first has waited for more than 100 ms, but not if the next commit takes all that wait', async t => {
  const { clock, pass } = clockOf(t)
  const { commit, first, finishAll } = handCommit()
  const batches = groupCommit(commit, { bounds: { batch: 10, queue: 1_000, timeout: 5_000 }, clock })
  const answers = [batches.submit(0)]
  await first()
  answers.push(batches.submit(1))
  pass(1_000)
  assert.equal(batches.isBehind(), false)
  answers.push(...range(200, 2).map(item => batches.submit(item)))
  pass(101)
  assert.equal(batches.isBehind(), true)
  finishAll()
  await Promise.all(answers)
  assert.equal(batches.isBehind(), false)
})

describe('a store that merges what waits for it', () => {
  test('gets a batch as soon as enough wait, while others are under way', async () => {
    const { commit, stored, finishAll } = handCommit()
    const batches = groupCommit(commit, { bounds: patient, ahead: { batches: 3, items: 4 } })
    const answers = range(20).map(item => batches.submit(item))
    assert.deepEqual(stored(), range(16), 'two batches of 4 and one of 8; the others wait for one of three')
    finishAll()
    assert.deepEqual(await Promise.all(answers), range(20).map(String))
  })

  test('has no more on its way than two commits may hold', async () => {
    const { commit, stored, finishAll } = handCommit()
    const batches = groupCommit(commit, { bounds: patient, ahead: { batches: 16, items: 100 } })
    const answers = range(2_000).map(item => batches.submit(item))
    assert.ok(stored().length <= 2 * patient.batch)
    finishAll()
    assert.deepEqual(await Promise.all(answers), range(2_000).map(String))
  })

  test('gets half as many after a transaction that took long, however many batches that had', async () => {
    const ends: (() => void)[] = []
    let sent = 0
    const commit = (items: readonly number[]) => {
      sent += items.length
      return new Promise<readonly string[]>(resolve => ends.push(() => resolve(items.map(String))))
    }
    const long = { items: 1_600, took: 200 }
    const batches = groupCommit(commit, {
      bounds: { ...patient, batch: 2_048 },
      ahead: { batches: 16, items: 100 },
      ended: () => long,
    })
    const answers = range(5_000).map(item => batches.submit(item))
    assert.equal(sent, 3_200, '100, 100, 200, 400, 800 and 1,600')
    for (const end of ends.splice(0)) end()
    await answers[3_199]
    assert.ok(sent >= 3_200 + 800, `${sent - 3_200} are on their way`)
    while (ends.length > 0) {
      for (const end of ends.splice(0)) end()
      await soon()
    }
    assert.deepEqual(await Promise.all(answers), range(5_000).map(String))
  })

  test('gets fewer after a transaction that took long', async () => {
    const { commit, stored, first, finishAll } = handCommit()
    const bounds = { ...patient, batch: 1_024 }
    const ended = () => ({ items: 1_024, took: 200 })
    const batches = groupCommit(commit, { bounds, ahead: { batches: 2, items: 1_024 }, ended })
    const answers = range(3_000).map(item => batches.submit(item))
    ;(await first()).finish()
    await answers[0]
    assert.equal(stored().length, 1_024 + 512)
    finishAll()
    assert.deepEqual(await Promise.all(answers), range(3_000).map(String))
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BatchBounds, batches } from '../../src/store/batches.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import { until } from '../harness/program.ts'

/** Commits that the test ends by hand, in the order in which they began. */
function handCommit() {
  const begun: { items: readonly number[]; finish: () => void; fail: (error: Error) => void }[] = []
  let isFree = false
  return {
    begun,
    commit: (items: readonly number[]) =>
      new Promise<readonly string[]>((resolve, fail) => {
        const finish = () => resolve(items.map(String))
        begun.push({ items, finish, fail })
        if (isFree) finish()
      }),
    stored: () => begun.flatMap(({ items }) => items),
    /** Ends all that are under way, and all that come. */
    finishAll() {
      isFree = true
      for (const { finish } of begun) finish()
    },
  }
}

const range = (length: number, from = 0) => Array.from({ length }, (_, i) => from + i)
const bounds: BatchBounds = { batch: 2, queue: 10_000, timeout: 60_000, parallel: 2 }
const soon = () => new Promise(resolve => setImmediate(() => setImmediate(resolve)))

/** What became of each so far. */
function outcomes(answers: readonly Promise<string>[]) {
  const all: string[] = answers.map(() => 'waits')
  for (const [i, answer] of answers.entries()) {
    answer.then(
      () => {
        all[i] = 'answered'
      },
      (error: Error) => {
        assert.ok(error instanceof StoreUnavailable)
        all[i] = error.message
      },
    )
  }
  return all
}

describe('group commit', () => {
  test('those who come at once share a batch; nobody is answered before it is committed, then everybody', async () => {
    const { begun, commit, finishAll } = handCommit()
    const queue = batches(commit, { ...bounds, batch: 128 })
    const answers = range(5).map(item => queue.submit(item))
    const all = outcomes(answers)
    await soon()
    assert.equal(begun.length, 1)
    assert.deepEqual(new Set(all), new Set(['waits']))
    finishAll()
    assert.deepEqual(await Promise.all(answers), range(5).map(String))
  })

  test('no more are under way than may be, and no more wait; one that fails refuses those in it', async () => {
    const { begun, commit, stored, finishAll } = handCommit()
    const queue = batches(commit, { ...bounds, queue: 5 })
    const first = range(4).map(item => queue.submit(item))
    await soon()
    const crowd = range(9, 4).map(item => queue.submit(item))
    const all = outcomes(crowd)
    await soon()
    assert.deepEqual(stored(), range(4))
    assert.deepEqual(all, [...Array(5).fill('waits'), ...Array(4).fill('too many are waiting for the database')])
    assert.equal(queue.waiting(), 5)
    const refused = assert.rejects(Promise.all(first), /full/)
    begun[0]!.fail(new StoreUnavailable('full'))
    finishAll()
    assert.deepEqual(await Promise.all([...first.slice(2), ...crowd.slice(0, 5)]), range(7, 2).map(String))
    await refused
  })

  test('drain answers everybody who was accepted and refuses the next', async () => {
    const { commit, finishAll } = handCommit()
    const queue = batches(commit, bounds)
    const answers = range(5).map(item => queue.submit(item))
    let isDrained = false
    const drained = queue.drain().then(() => {
      isDrained = true
    })
    await assert.rejects(queue.submit(5), /StoreUnavailable: the store is closing/)
    await soon()
    assert.equal(isDrained, false)
    finishAll()
    await drained
    assert.deepEqual(await Promise.all(answers), range(5).map(String))
    await queue.drain()
  })

  test('refuse answers everybody at once, also those whose commit does not end', async () => {
    const { commit, stored, finishAll } = handCommit()
    const queue = batches(commit, bounds)
    const all = outcomes(range(7).map(item => queue.submit(item)))
    await soon()
    const drained = queue.drain()
    queue.refuse()
    await soon()
    assert.deepEqual(new Set(all), new Set(['the store is closing, and could not commit in time']))
    await assert.rejects(queue.submit(7), StoreUnavailable)
    finishAll()
    await drained
    assert.deepEqual(stored(), range(4))
  })

  test('nobody waits longer than the timeout, in a commit or before it; who was refused in the queue is not stored', async () => {
    const { commit, stored, finishAll } = handCommit()
    const queue = batches(commit, { ...bounds, timeout: 200 })
    const all = outcomes(range(6).map(item => queue.submit(item)))
    await sleep(100)
    assert.deepEqual(new Set(all), new Set(['waits']))
    await until(() => !all.includes('waits'))
    assert.deepEqual(new Set(all), new Set(['the database did not answer within 200 ms']))
    finishAll()
    await soon()
    assert.equal(await queue.submit(9), '9')
    assert.deepEqual(stored(), [0, 1, 2, 3, 9])
  })

  test('it is behind when eight batches wait, and the first of them for more than a tenth of a second', async t => {
    const { commit, finishAll } = handCommit()
    const { batch, parallel } = bounds
    const queue = batches(commit, { ...bounds, queue: 100 })
    const answers = range(batch * (parallel + 8) - 1).map(item => queue.submit(item))
    await soon()
    const now = performance.now()
    t.mock.method(performance, 'now', () => now + 110)
    assert.equal(queue.isBehind(), false, 'one is missing')
    answers.push(queue.submit(-1))
    assert.equal(queue.isBehind(), true)
    finishAll()
    await Promise.all(answers)
    assert.equal(queue.isBehind(), false)
  })
})

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { loop, type Work } from '../../src/waitlist/delivery/loop.ts'
import { moment } from './scene.ts'

const wait = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds))
/** Looks until it is so; the test's own timeout ends it. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await wait(2)
}

/** A loop over numbers that are there, with a rest that no test waits for unless it says so. */
function working(t: TestContext, parts: Partial<Work<number>> = {}) {
  /** What is found by the next look. */
  const items: number[] = []
  const done: number[] = []
  const failures: string[] = []
  let takes = 0
  const { take = async most => items.splice(0, most), ...rest } = parts
  const made = loop<number>({
    take: most => {
      takes++
      return take(most)
    },
    async do(item) {
      done.push(item)
    },
    concurrency: 3,
    timeout: 20_000,
    rest: 20_000,
    failed: error => void failures.push(String(error)),
    ...rest,
  })
  t.after(() => made.stop(0))
  return { loop: made, items, done, failures, takes: () => takes }
}

const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length

describe('a loop of work', () => {
  test('does all there is, at most so many at once, and then rests', async t => {
    let atOnce = 0
    let most = 0
    const done: number[] = []
    const bench = working(t, {
      async do(item) {
        most = Math.max(most, ++atOnce)
        await wait(1)
        atOnce--
        done.push(item)
      },
    })
    bench.items.push(...Array.from({ length: 50 }, (_, i) => i))
    bench.loop.start()
    await until(() => done.length === 50)
    assert.equal(most, 3)
    assert.deepEqual(
      done.toSorted((a, b) => a - b),
      Array.from({ length: 50 }, (_, i) => i),
    )
    await wait(30)
    const { takes } = bench
    const before = takes()
    assert.ok(before <= 2 + 50, `${before} looks for 50 items`)
    await wait(100)
    assert.equal(takes(), before, 'a loop that rests looks at nothing')
  })

  test('is woken, also by what comes while it looks', async t => {
    const bench = working(t)
    bench.loop.start()
    await until(() => bench.takes() === 1)
    // Until it rests, which it would for 20 s.
    await wait(20)
    bench.items.push(1)
    bench.loop.wake()
    await until(() => bench.done.length === 1)

    let first = true
    const during = working(t, {
      take: async () => {
        if (!first) return []
        first = false
        during.loop.wake()
        return []
      },
    })
    during.loop.start()
    await until(() => during.takes() >= 2)
  })

  test('looks again after a rest when nobody wakes it', async t => {
    const bench = working(t, { rest: 5 })
    bench.loop.start()
    await until(() => bench.takes() >= 3)
    bench.items.push(1)
    await until(() => bench.done.length === 1)
  })

  test('a look that fails is tried again after a rest, and told once', async t => {
    let calls = 0
    const bench = working(t, {
      rest: 5,
      take: async () => {
        if (++calls <= 5) throw new Error('busy')
        return calls === 6 ? [6] : []
      },
    })
    bench.loop.start()
    await until(() => bench.done.length === 1)
    assert.deepEqual(bench.failures, ['Error: busy'])
  })

  test('work that rejects is told, and ends neither the loop nor the process', async t => {
    const bench = working(t, { do: () => Promise.reject(new Error('a bug')) })
    bench.items.push(1, 2)
    bench.loop.start()
    await until(() => bench.failures.length === 2)
    assert.deepEqual(bench.failures, ['Error: a bug', 'Error: a bug'])
    bench.items.push(3)
    bench.loop.wake()
    await until(() => bench.failures.length === 3)
  })

  test('the time of an item ends, of that one alone', async t => {
    const cut: number[] = []
    const bench = working(t, {
      timeout: 50,
      do: (item, deadline) =>
        new Promise(resolve => {
          if (item === 1) return resolve()
          deadline.addEventListener('abort', () => {
            cut.push(item)
            resolve()
          })
        }),
    })
    bench.items.push(1, 2)
    assert.equal(await bench.loop.once(), 2)
    assert.deepEqual(cut, [2])
  })
})

describe('the end of a loop', () => {
  test('it takes nothing more and waits for what is under way', async t => {
    const end = moment()
    let over = false
    const bench = working(t, {
      async do() {
        await end.promise
        over = true
      },
    })
    bench.items.push(1)
    bench.loop.start()
    await until(() => bench.takes() === 1)
    const stopped = bench.loop.stop(20_000).then(() => assert.ok(over))
    bench.items.push(2)
    bench.loop.wake()
    await wait(20)
    end.resolve()
    await stopped
    assert.deepEqual(bench.items, [2])
    assert.equal(bench.takes(), 1)
  })

  test('what is still under way after the grace is cut', async t => {
    const bench = working(t, {
      do: (_, deadline) => new Promise(resolve => deadline.addEventListener('abort', () => resolve())),
    })
    bench.items.push(1, 2)
    bench.loop.start()
    await until(() => bench.takes() === 1)
    await bench.loop.stop(20)
  })

  test('what was taken when it came is done, since nobody else has it', async t => {
    const taking = moment()
    const bench = working(t, {
      take: async () => {
        await taking.promise
        return [7]
      },
    })
    bench.loop.start()
    const stopped = bench.loop.stop(20_000)
    taking.resolve()
    await stopped
    assert.deepEqual(bench.done, [7])
  })

  test('it leaves no timer behind; it may come twice, and before the start', async t => {
    const before = timers()
    const bench = working(t, { rest: 20_000 })
    bench.items.push(1)
    bench.loop.start()
    await until(() => bench.done.length === 1)
    await bench.loop.stop(20_000)
    await bench.loop.stop(20_000)
    bench.loop.start()
    const never = working(t)
    await never.loop.stop(20_000)
    never.loop.start()
    await wait(10)
    assert.equal(never.takes(), 0)
    assert.equal(timers(), before)
  })
})

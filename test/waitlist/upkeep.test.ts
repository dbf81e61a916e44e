import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import type { Pruned } from '../../src/waitlist/ports/upkeep.ts'
import { expiring } from '../../src/waitlist/upkeep/expire.ts'
import { pruning } from '../../src/waitlist/upkeep/prune.ts'
import { until } from '../harness/program.ts'
import { keptLog } from './log.ts'

const DAY = 86_400_000

/** A store with so many pages, each with so many old deliveries. */
function pages(count: number, each: number) {
  const asked: number[] = []
  return {
    asked,
    acquireInterval: async () => true,
    async prune(_age: number, after: number, most: number, counting = false): Promise<Pruned> {
      if (!counting) asked.push(after)
      const last = after + most
      return { looked: most, deleted: each, abandoned: 0, last: last >= count * most ? null : last }
    },
  }
}

/** One after the other, and so small that signups need not wait for long. */
function assertInOrder(asked: readonly number[]): void {
  const size = asked[1]!
  assert.ok(size > 0 && size <= 1_000)
  assert.deepEqual(
    asked,
    asked.map((_, i) => i * size),
  )
}

describe('deleting deliveries that ended long ago', () => {
  const prunes = (store: Parameters<typeof pruning>[0]['store'], rest = 1) => {
    const { log, lines } = keptLog()
    const { once, start, stop } = pruning({ store, keep: 7 * DAY, log, rest })
    return { once, start, stop, lines, levels: () => lines.map(({ level }) => level) }
  }

  test('whoever has the turn goes through all pages, one after the other, and the log says what was deleted', async () => {
    const store = pages(3, 1)
    const { once, lines } = prunes(store)
    assert.equal(await once(), 1)
    assert.equal(store.asked.length, 3)
    assertInOrder(store.asked)
    assert.match(JSON.stringify(lines), /"deliveries":3,"days":7/)
  })

  test('another instance has the turn: nothing is looked at', async () => {
    const store = pages(1, 1)
    const { once, lines } = prunes({ ...store, acquireInterval: async () => false })
    assert.equal(await once(), 0)
    assert.deepEqual([store.asked, lines], [[], []])
  })

  test('a stop does not wait for the rest', async () => {
    const store = pages(10, 1)
    const { start, stop } = prunes(store, 60_000)
    start()
    await until(() => store.asked.length > 0)
    await stop(0)
    assert.equal(store.asked.length, 1)
  })

  test('a store that is out ends the turn, which is told; the next one goes on where it ended', async () => {
    const store = pages(4, 1)
    let fails = 1
    const prune = async (...all: Parameters<typeof store.prune>) => {
      if (all[3] !== true && store.asked.length === 2 && fails-- > 0) throw new StoreUnavailable('busy')
      return store.prune(...all)
    }
    const { once, levels } = prunes({ ...store, prune })
    await once()
    assert.deepEqual(levels(), ['info', 'warn'])
    await once()
    assert.equal(store.asked.length, 4)
    assertInOrder(store.asked)
  })

  test('unusually many are told of, and deleted only an hour later', async () => {
    const store = pages(3, 100)
    const { once, lines, levels } = prunes(store)
    await once()
    assert.deepEqual(store.asked, [])
    assert.match(JSON.stringify(lines), /"deliveries":300,"of":1500,"days":7/)
    await once()
    assert.equal(store.asked.length, 3)
    assert.deepEqual(levels(), ['warn', 'info'])
  })
})

describe('deleting contacts that did not confirm in time', () => {
  /** So many of them; `clock` is called before each step. */
  function expires(count: number, { isOurTurn = true, clock = (): number => 0, rest = 1 } = {}) {
    const asked: (readonly [within: number, most: number])[] = []
    let left = count
    const store = {
      acquireInterval: async () => isOurTurn,
      async expire(within: number, most: number): Promise<number> {
        asked.push([within, most])
        const gone = Math.min(left, most)
        left -= gone
        return gone
      },
    }
    const { log, lines } = keptLog()
    const { once, start, stop } = expiring({ store, within: 7 * DAY, log, rest, clock, monotonic: () => 0 })
    return { once, start, stop, asked, lines }
  }

  test('whoever has the turn deletes all of them, some at a time, and the log says how many', async () => {
    const { once, asked, lines } = expires(500)
    assert.equal(await once(), 1)
    assert.ok(asked.length > 1 && asked.every(([within, most]) => within === 7 * DAY && most <= 500))
    assert.match(JSON.stringify(lines), /"contacts":500/)
  })

  test('another instance has the turn: nobody is looked at', async () => {
    const { once, asked } = expires(500, { isOurTurn: false })
    assert.equal(await once(), 0)
    assert.deepEqual(asked, [])
  })

  test('a clock that leaps ends the turn', async () => {
    let looks = 0
    const { once, asked } = expires(500, { clock: () => (looks++ < 2 ? 0 : DAY) })
    await once()
    assert.equal(asked.length, 1)
  })

  test('a stop does not wait for the rest', async () => {
    const { start, stop, asked } = expires(5_000, { rest: 60_000 })
    start()
    await until(() => asked.length > 0)
    await stop(0)
    assert.equal(asked.length, 1)
  })
})

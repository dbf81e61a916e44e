import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import type { Pruned } from '../../src/waitlist/ports/upkeep.ts'
import { pruning } from '../../src/waitlist/upkeep/prune.ts'
import { keptLog } from './log.ts'

const DAY = 86_400_000

/** A store with so many pages, of each of which so many deliveries are old. */
function pages(count: number, old = 1) {
  const asked: (readonly [age: number, after: number])[] = []
  return {
    asked,
    async prune(age: number, after: number, most: number, counting = false): Promise<Pruned> {
      if (!counting) asked.push([age, after])
      const last = after + most
      return { looked: most, deleted: old, abandoned: 0, last: last >= count * most ? null : last }
    },
  }
}

test('whoever has the turn goes through all pages, one after the other, and the log says what was deleted', async () => {
  const store = pages(3)
  const { log, lines } = keptLog()
  const loop = pruning({ store: { ...store, acquireInterval: async () => true }, keep: 7 * DAY, log, rest: 1 })
  assert.equal(await loop.once(), 1)
  const [[, first], [, second]] = store.asked as [[number, number], [number, number]]
  assert.deepEqual(store.asked, [
    [7 * DAY, 0],
    [7 * DAY, second],
    [7 * DAY, 2 * second],
  ])
  assert.equal(first, 0)
  assert.ok(second > 0 && second <= 1_000, 'signups wait for a step')
  assert.equal(lines.length, 1)
  assert.match(JSON.stringify(lines[0]), /"deliveries":3,"days":7/)
})

test('another instance has the turn: nothing is looked at', async () => {
  const store = pages(1)
  const { log, lines } = keptLog()
  const loop = pruning({ store: { ...store, acquireInterval: async () => false }, keep: 7 * DAY, log, rest: 1 })
  assert.equal(await loop.once(), 0)
  assert.deepEqual([store.asked, lines], [[], []])
})

test('a stop does not wait for the rest', async () => {
  const store = pages(10)
  const { log } = keptLog()
  const loop = pruning({ store: { ...store, acquireInterval: async () => true }, keep: 7 * DAY, log, rest: 60_000 })
  loop.start()
  while (store.asked.length === 0) await wait(1)
  await loop.stop(0)
  assert.equal(store.asked.length, 1)
})

test('a store that is out ends the turn, with a line in the log; the next one goes on where it ended', async () => {
  const { log, lines } = keptLog()
  const store = pages(4)
  let fails = 1
  const prune = async (...all: Parameters<typeof store.prune>) => {
    if (all[3] !== true && store.asked.length === 2 && fails-- > 0) throw new StoreUnavailable('busy')
    return store.prune(...all)
  }
  const loop = pruning({ store: { prune, acquireInterval: async () => true }, keep: 7 * DAY, log, rest: 1 })
  await loop.once()
  assert.deepEqual(
    lines.map(({ message }) => message),
    ['deliveries that ended long ago were deleted', 'deliveries that ended long ago were not deleted'],
  )
  await loop.once()
  const page = store.asked[1]![1]
  assert.deepEqual(
    store.asked.map(([, after]) => after),
    [0, page, 2 * page, 3 * page],
  )
})

test('unusually many are told of, and deleted only an hour later', async () => {
  const store = pages(3, 100)
  const { log, lines } = keptLog()
  const loop = pruning({ store: { ...store, acquireInterval: async () => true }, keep: 7 * DAY, log, rest: 1 })
  await loop.once()
  assert.deepEqual(store.asked, [])
  await loop.once()
  assert.equal(store.asked.length, 3)
  assert.deepEqual(
    lines.map(({ message }) => message),
    [
      'by the clock, unusually many deliveries are old: they are deleted in an hour',
      'deliveries that ended long ago were deleted',
    ],
  )
  assert.match(JSON.stringify(lines[0]), /"deliveries":300,"of":1500,"days":7/)
  await loop.once()
  assert.equal(store.asked.length, 3, 'they were told of once')
})

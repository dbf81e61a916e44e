import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import type { Filled } from '../../src/waitlist/ports/upkeep.ts'
import { fillingMailboxes } from '../../src/waitlist/upkeep/fill-mailboxes.ts'
import { until } from '../harness/program.ts'
import { keptLog } from './log.ts'

/** A store with so many pages, each with so many contacts to fill in the first pass. */
function pages(count: number, each: number) {
  const asked: number[] = []
  return {
    asked,
    async fillMailboxes(after: number, most: number): Promise<Filled> {
      asked.push(after)
      const isLast = after === (count - 1) * most
      return { filled: asked.length > count ? 0 : each, last: isLast ? null : after + most }
    },
  }
}

test('all pages are looked at, one after the other, and the log says once how many were filled', async () => {
  const store = pages(3, 2)
  const { log, lines } = keptLog()
  const filler = fillingMailboxes({ store, log, rest: 1 })
  filler.start()
  await until(() => lines.length > 0)
  await filler.stop(0)
  const [first, second] = store.asked
  assert.equal(first, 0)
  assert.ok(second! > 0 && second! <= 500, 'signups wait for a step')
  assert.deepEqual(store.asked, [0, second, 2 * second!])
  assert.deepEqual(lines, [
    { level: 'info', message: 'the mailboxes of earlier contacts are known now', details: { contacts: 6 } },
  ])
})

for (const [what, count] of [
  ['between two steps', 1_000],
  ['between two passes', 1],
] as const) {
  test(`a stop ${what} does not wait for the rest`, { timeout: 10_000 }, async () => {
    const store = pages(count, 0)
    const filler = fillingMailboxes({ store, log: keptLog().log, rest: 60_000 })
    filler.start()
    await until(() => store.asked.length > 0)
    await filler.stop(0)
    assert.equal(store.asked.length, 1)
  })
}

test('a store that is out is told, and asked for the same page again; nothing is counted twice', async () => {
  const store = pages(3, 1)
  const { log, lines } = keptLog()
  let out = false
  const fillMailboxes = async (...all: Parameters<typeof store.fillMailboxes>) => {
    out = !out && store.asked.length === 1
    if (out) throw new StoreUnavailable('busy')
    return store.fillMailboxes(...all)
  }
  const filler = fillingMailboxes({ store: { fillMailboxes }, log, rest: 1, retry: 1 })
  filler.start()
  await until(() => lines.length > 1)
  await filler.stop(0)
  assert.deepEqual(
    lines.map(({ level, details }) => [level, details]),
    [
      ['warn', { why: 'StoreUnavailable: busy' }],
      ['info', { contacts: 3 }],
    ],
  )
  assert.equal(new Set(store.asked).size, store.asked.length)
})

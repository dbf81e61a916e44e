import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { type CleaningParts, cleaning } from '../../src/waitlist/upkeep/clean.ts'
import { until } from '../harness/program.ts'
import { keptLog } from './log.ts'

const DAY = 86_400_000
const HOUR = 3_600_000

type Asked = readonly [what: string, age: number]

/** A store with so many rows to delete; each of its first so many steps fails. */
function storeWith(deliveries: number, contacts: number, failures = 0) {
  const asked: Asked[] = []
  const left = { prune: deliveries, expire: contacts }
  const step = (what: 'prune' | 'expire') => async (age: number, most: number) => {
    asked.push([what, age])
    if (asked.length <= failures) throw new StoreUnavailable('busy')
    const gone = Math.min(left[what], most)
    left[what] -= gone
    return gone
  }
  const store: CleaningParts['store'] = { prune: step('prune'), expire: step('expire') }
  return { store, asked }
}

test('all that is over is deleted at the start, some at a time, and the log says how many', async () => {
  const { store, asked } = storeWith(1_500, 10)
  const { log, lines } = keptLog()
  const { start, stop } = cleaning({ store, confirmWithin: 7 * DAY, log })
  start()
  await until(() => lines.length === 2)
  await stop(0)
  assert.deepEqual(asked, [
    ['prune', 90 * DAY],
    ['prune', 90 * DAY],
    ['expire', 7 * DAY],
  ])
  assert.deepEqual(
    lines.map(({ details }) => details),
    [{ deliveries: 1_500 }, { contacts: 10 }],
  )
})

test('a store that is out is told, and asked again an hour later', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { store, asked } = storeWith(10, 10, 1)
  const { log, lines } = keptLog()
  const { start, stop } = cleaning({ store, confirmWithin: null, log })
  const turns = async () => {
    for (let i = 0; i < 10; i++) await new Promise(resolve => setImmediate(resolve))
  }
  start()
  await turns()
  assert.deepEqual([asked.length, lines.map(({ level }) => level)], [1, ['warn']])
  t.mock.timers.tick(HOUR)
  await turns()
  assert.deepEqual([asked.length, lines.map(({ level }) => level)], [2, ['warn', 'info']])
  await stop(0)
})

test('a stop does not wait for the rest', async () => {
  const { store, asked } = storeWith(1_000_000, 0)
  const { start, stop } = cleaning({ store, confirmWithin: null, log: keptLog().log })
  start()
  await until(() => asked.length > 0)
  await stop(0)
  assert.ok(asked.length < 3)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../../src/store/database.ts'
import { type CleaningParts, cleaning } from '../../src/waitlist/upkeep/clean.ts'
import { until } from '../harness/program.ts'
import { keptLog } from './log.ts'

/** A store whose steps delete so many rows, one after the other, and then none; null: a step fails. */
function storeWith(deletes: (number | null)[]) {
  let steps = 0
  const store = {
    async transaction() {
      const deleted = deletes[steps++]
      if (deleted === null) throw new StoreUnavailable('busy')
      return deleted ?? 0
    },
  } as unknown as CleaningParts['store']
  return { store, steps: () => steps }
}

test('all that is over is deleted at the start, some at a time, and the log says how many', async () => {
  const { store, steps } = storeWith([0, 0, 1_000, 500, 10])
  const { log, lines } = keptLog()
  const { start, stop } = cleaning({ store, provider: null, log })
  start()
  await until(() => lines.length === 2)
  await stop(0)
  assert.equal(steps(), 5)
  assert.deepEqual(
    lines.map(({ details }) => details),
    [{ deliveries: 1_500 }, { contacts: 10 }],
  )
})

test('a stop does not wait for the rest', async () => {
  const { store, steps } = storeWith(Array(1_000).fill(1_000))
  const { start, stop } = cleaning({ store, provider: null, log: keptLog().log })
  start()
  await until(() => steps() > 0)
  await stop(0)
  assert.ok(steps() < 3)
})

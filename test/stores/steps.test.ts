import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inSteps } from '../../src/stores/sql.ts'

/** Steps over so many rows, on a clock of its own, at so many milliseconds a row. */
async function over(rows: number, cost: (row: number) => number) {
  let now = 0
  let left = rows
  const steps: { readonly most: number; readonly took: number; readonly rested: number }[] = []
  let last = { most: 0, took: 0 }
  await inSteps(
    most => {
      const changed = Math.min(most, left)
      const took = changed * cost(rows - left)
      now += took
      left -= changed
      last = { most, took }
      if (left === 0) steps.push({ ...last, rested: 0 })
      return left > 0
    },
    {
      clock: () => now,
      async rest(milliseconds) {
        now += milliseconds
        steps.push({ ...last, rested: milliseconds })
      },
    },
  )
  assert.equal(left, 0)
  return steps
}

describe('many rows in steps', () => {
  for (const cost of [0.005, 0.2, 3]) {
    test(`at ${cost} ms a row a step soon takes about 20 ms, and four times as long is left to others`, async () => {
      const steps = await over(40_000, () => cost)
      for (const { most, took, rested } of steps.slice(0, -1)) {
        assert.ok(most >= 1 && most <= 5_000)
        assert.ok(rested >= 80 && rested >= 4 * took)
      }
      for (const { most, took } of steps.slice(8)) {
        assert.ok(took <= 25, `${most} rows in ${took} ms`)
        assert.ok(took >= 10 || most === 5_000 || steps.at(-1)?.most === most, `${most} rows in ${took} ms`)
      }
    })
  }
})

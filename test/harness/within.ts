import assert from 'node:assert/strict'

const TRIES = 10

/**
 * Asserts a promised bound, in milliseconds, of what takes longer each time where the promise is not kept. A busy machine
 * may be late, but not each time.
 */
export async function within(bound: number, attempt: () => Promise<unknown>): Promise<void> {
  const taken: number[] = []
  while (taken.length < TRIES) {
    const began = performance.now()
    await attempt()
    taken.push(performance.now() - began)
    if (taken.at(-1)! < bound) return
  }
  assert.fail(`it took ${taken.map(Math.round).join(', ')} ms each time, not less than ${bound}`)
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mending } from '../../src/stores/mending.ts'

/** A mending of so many pages for each destination, and which of them were looked at. */
function pages(count: number) {
  const seen: string[] = []
  const { saw, mend } = mending<number>(async (destination, after = 0) => {
    seen.push(`${destination} ${after}`)
    return after < count ? after + 1 : null
  })
  return { saw, mend, looks: () => seen.splice(0) }
}

describe('looking for what is late', () => {
  test('for each destination from the first page to the last, one with each call, and then no more', async () => {
    const { mend, looks } = pages(2)
    for (let call = 0; call < 5; call++) await mend('webhook')
    await mend('crm')
    assert.deepEqual(looks(), ['webhook 0', 'webhook 1', 'webhook 2', 'crm 0'])
  })

  for (const [title, times, again] of [
    ['as it goes', [1_000, 1_100, 2_000], false],
    ['set forward', [1_000, 3_600_000, 3_601_000], false],
    ['back by a second', [1_000, 100, 200], false],
    ['back by more', [1_000, 99, 200], true],
    ['back by more and on at once', [10_000, 5_000, 10_000], true],
  ] as const) {
    test(`again from the first page where the clock was set back: ${title}`, async () => {
      const { saw, mend, looks } = pages(0)
      await mend('webhook')
      looks()
      for (const [i, time] of times.entries()) saw(time, 100 * i, 100 * i)
      await mend('webhook')
      assert.deepEqual(looks(), again ? ['webhook 0'] : [])
    })
  }

  test('an answer that was long on its way, or overtaken, is no clock that was set back', async () => {
    const { saw, mend, looks } = pages(0)
    await mend('webhook')
    looks()
    saw(10_000, 10_000, 20_000)
    saw(11_000, 11_000, 21_000)
    saw(10_500, 10_500, 22_000)
    saw(22_000, 22_000, 22_000)
    await mend('webhook')
    assert.deepEqual(looks(), [])
  })

  test('a clock that is set back during a look is not forgotten', async () => {
    const { promise, resolve } = Promise.withResolvers<number>()
    const looked: (number | undefined)[] = []
    const { saw, mend } = mending<number>(async (_, after) => {
      looked.push(after)
      return looked.length === 1 ? promise : null
    })
    saw(10_000, 0, 0)
    const first = mend('webhook')
    saw(0, 0, 0)
    resolve(1)
    await first
    await mend('webhook')
    assert.deepEqual(looked, [undefined, undefined])
  })

  test('a look that fails is made again', async () => {
    let away = true
    let looks = 0
    const { mend } = mending<number>(async () => {
      looks++
      if (away) throw new Error('away')
      return null
    })
    await assert.rejects(mend('webhook'), /away/)
    away = false
    for (let i = 0; i < 2; i++) await mend('webhook')
    assert.equal(looks, 2)
  })
})

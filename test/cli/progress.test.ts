import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { progressOn } from '../../src/cli/print.ts'

describe('the progress', () => {
  /** What stands on a screen after one look each second. */
  function shown(isTTY: boolean, looks: readonly number[], columns?: number): string {
    let text = ''
    let time = 0
    const screen = {
      isTTY,
      ...(columns !== undefined && { columns }),
      write(more: string) {
        text += more
      },
    }
    const progress = progressOn(screen, () => time)
    for (const done of looks) {
      progress.show({ phase: 'copying', done, total: 4_000 })
      time += 1_000
    }
    progress.end()
    return text
  }

  test('is a bar on a terminal, in one line', () => {
    const looks = shown(true, [0, 1_000, 1_000, 4_000]).split('\r')
    assert.deepEqual(looks, [
      '',
      `[${' '.repeat(30)}] copying: 0 of 4,000 rows, 0 %\x1b[K`,
      `[${'#'.repeat(7)}${' '.repeat(23)}] copying: 1,000 of 4,000 rows, 25 %\x1b[K`,
      `[${'#'.repeat(7)}${' '.repeat(23)}] copying: 1,000 of 4,000 rows, 25 %, 500/s, 6 s left\x1b[K`,
      `[${'#'.repeat(30)}] copying: 4,000 of 4,000 rows, 100 %\x1b[K\n`,
    ])
  })

  test('is in one line of a terminal with fifty columns too', () => {
    assert.deepEqual(shown(true, [0, 4_000], 50).split('\r').slice(2), [
      `[${'#'.repeat(11)}] copying: 4,000 of 4,000 rows, 100 %\x1b[K\n`,
    ])
  })

  test('is not shown elsewhere', () => {
    assert.equal(shown(false, [0, 1_000, 4_000]), '')
  })
})

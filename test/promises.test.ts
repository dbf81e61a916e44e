import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readMutants } from '../scripts/mutants.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Promised {
  /** In the words of the page. */
  readonly promise: string
  readonly page: string
  /** The group of scripts/mutants.diff that breaks it, and names more tests. */
  readonly breaks?: string
  /** The strongest tests: titles, as they are written, by file. */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

const promises: readonly Promised[] = JSON.parse(read('docs/engineering/promises.json'))

test('each promise stands on its page, and the tests that hold it exist', () => {
  for (const { promise, page, tests } of promises) {
    // The page breaks lines where they end.
    assert.ok(read(page).replaceAll(/\s+/g, ' ').includes(promise), `${page}: ${promise}`)
    assert.ok(Object.keys(tests).length > 0, promise)
    for (const [file, titles] of Object.entries(tests)) {
      const text = read(file)
      assert.ok(titles.length > 0, promise)
      for (const title of titles) {
        assert.ok(
          ["'", '`'].some(quote => text.includes(quote + title + quote)),
          `${file}: ${title}`,
        )
      }
    }
  }
})

test('each group of breaks belongs to one promise', () => {
  const groups = new Set(readMutants().map(({ group }) => group))
  const named = promises.flatMap(({ breaks }) => breaks ?? [])
  assert.deepEqual(named.sort(), [...groups].sort())
})

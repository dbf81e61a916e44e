import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../', import.meta.url)
const text = readFileSync(new URL('docs/engineering/conformance.md', root), 'utf8')
const rows = text.split('\n').filter(line => line.startsWith('| C-'))

test('the conformance document has each item from C-1 to C-104 once, in order', () => {
  const items = rows.map(row => Number(/^\| C-(\d+) \|/.exec(row)?.[1]))
  assert.deepEqual(
    items,
    Array.from({ length: 104 }, (_, i) => i + 1),
  )
})

test('every test that the conformance document names exists', () => {
  const named = new Set(text.match(/test\/[\w./-]+/g))
  assert.ok(named.size > 20)
  for (const file of named) assert.ok(existsSync(new URL(file, root)), file)
})

test('an item without a test is one that we do nothing about', () => {
  const untested = rows.filter(row => !row.includes('`test/')).map(row => /C-\d+/.exec(row)?.[0])
  assert.deepEqual(untested, ['C-44'])
})

test('an item that a row gives to a test file is in that file, where it is named by number', () => {
  // TLS, the store and the program's start and stop tell their promises in words.
  const numbered = /^test\/(http\/(?!tls|certificate|slow|docs)|waitlist\/)/
  const missing: string[] = []
  for (const row of rows) {
    const item = Number(/^\| C-(\d+) \|/.exec(row)?.[1])
    for (const file of row.match(/test\/[\w./-]+\.ts/g) ?? []) {
      if (numbered.test(file) && !itemsOf(file).has(item)) missing.push(`C-${item} in ${file}`)
    }
  }
  assert.deepEqual(missing, [])
})

/** The items that a test file speaks of, ranges such as `C-72…C-74` included. */
function itemsOf(file: string): Set<number> {
  const source = readFileSync(new URL(file, root), 'utf8')
  const items = new Set<number>()
  for (const [, first, last] of source.matchAll(/C-(\d+)(?:…C-(\d+))?/g)) {
    for (let item = Number(first); item <= Number(last ?? first); item++) items.add(item)
  }
  return items
}

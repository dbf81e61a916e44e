import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { mutated, readMutants } from '../scripts/mutants.ts'

const root = new URL('../', import.meta.url)
const mutants = readMutants()

test('each mutant finds what it replaces exactly once, is still a program, and names its tests', () => {
  assert.ok(mutants.length >= 80)
  for (const mutant of mutants) {
    const text = mutated(mutant, readFileSync(new URL(mutant.file, root), 'utf8'))
    assert.ok(
      text !== null,
      `scripts/mutants.diff is stale: ${mutant.title}: ${mutant.file} has not once: ${mutant.from}`,
    )
    assert.doesNotThrow(() => stripTypeScriptTypes(text), mutant.title)
    assert.ok(mutant.tests.length > 0, mutant.title)
    for (const file of mutant.tests) assert.ok(existsSync(new URL(file, root)), `${mutant.title}: there is no ${file}`)
  }
})

test('no two mutants have one title', () => {
  const titles = mutants.map(({ title }) => title)
  assert.equal(new Set(titles).size, titles.length)
})

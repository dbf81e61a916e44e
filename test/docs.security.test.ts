import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../', import.meta.url)
const policy = readFileSync(new URL('SECURITY.md', root), 'utf8')
const text = readFileSync(new URL('docs/engineering/security.md', root), 'utf8')

test('every door of docs/engineering/security.md names a test, and each of them exists', () => {
  const rows = text.split('\n').filter(line => /^\| (?!door|-)/.test(line) && !line.startsWith('|---'))
  assert.ok(rows.length > 15)
  for (const row of rows) {
    const named = row.match(/test\/[\w./-]+/g) ?? []
    assert.ok(named.length > 0, row)
    for (const file of named) assert.ok(existsSync(new URL(file, root)), file)
  }
})

test('the settings that it and the security policy name exist', () => {
  const settings = readFileSync(new URL('.env.example', root), 'utf8')
  for (const name of (policy + text).match(/(?<=`)[A-Z]+_[A-Z_]+(?=`)/g) ?? [])
    assert.match(settings, new RegExp(`^#${name}=`, 'm'))
})

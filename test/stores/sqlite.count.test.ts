import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteFile } from '../../src/stores/sqlite/schema.ts'
import { temporaryFolder } from '../harness/folder.ts'

const file = new URL('../../src/stores/sqlite/count.ts', import.meta.url).href

test('while it counts, a process takes less than 6 MB more', t => {
  const folder = temporaryFolder(t)
  const [path, program] = [join(folder, 'waitlist.db'), join(folder, 'program.mjs')]
  openSqliteFile({ path }).close()
  const code = `
    const { countListedIn } = await import(${JSON.stringify(file)})
    const { rss } = process.memoryUsage
    const count = () => countListedIn(${JSON.stringify(path)})
    for (let i = 0; i < 3; i++) await count()
    const before = rss()
    let most = 0
    setInterval(() => { most = Math.max(most, rss()) }, 1).unref()
    for (let i = 0; i < 3; i++) await count()
    console.log(most - before)`
  writeFileSync(program, code)
  const taken = Number(execFileSync(process.execPath, [program], { encoding: 'utf8' }))
  assert.ok(taken < 6e6, `${taken} bytes`)
})

import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listIn, manyContacts, writeList } from './move.scene.ts'

test('a backup is not made beside the log of another database, which SQLite would apply to it', async t => {
  const folder = temporaryFolder(t)
  const [path, copy] = [join(folder, 'waitlist.db'), join(folder, 'copy.db')]
  writeList(path, manyContacts(3))
  for (const ending of ['-wal', '-journal']) {
    writeFileSync(copy + ending, 'left')
    await assert.rejects(sqliteOperator(path).backUp(copy), /copy\.db-\w+ was left by another database .*; remove it/)
    assert.equal(existsSync(copy), false)
    rmSync(copy + ending)
  }
  await sqliteOperator(path).backUp(copy)
  assert.deepEqual(listIn(copy), listIn(path))
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('copy')),
    ['copy.db'],
  )
})

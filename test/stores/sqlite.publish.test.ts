import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { publish } from '../../src/stores/sqlite/backup.ts'
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

test('a copy that is damaged does not get its name', t => {
  const folder = temporaryFolder(t)
  const [path, copy] = [join(folder, 'unfinished.db'), join(folder, 'copy.db')]
  writeList(path, manyContacts(1_000))
  const bytes = readFileSync(path)
  // A page in the middle, of 4 KiB.
  const page = Math.floor(bytes.length / 8_192) * 4_096
  writeFileSync(path, bytes.fill(0, page, page + 4_096))
  assert.throws(() => publish(path, copy), /the copy is damaged/)
  assert.equal(existsSync(copy), false)
})

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { temporaryFolder } from '../harness/folder.ts'

const refused = (error: unknown) => {
  assert.ok(error instanceof OperatorError, String(error))
  assert.match(error.message, /^There is no database at /)
  return true
}

test('without a database an operator is told so, and nothing is made', async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const { contacts, deliveries, delivery, replay, backlog, look, backUp } = sqliteOperator(path)
  await assert.rejects(contacts(), refused)
  await assert.rejects(deliveries({ limit: 1 }), refused)
  await assert.rejects(delivery(1), refused)
  await assert.rejects(replay({ abandoned: true }), refused)
  await assert.rejects(replay({ numbers: [1] }), refused)
  await assert.rejects(backUp(`${path}.copy`), refused)
  assert.deepEqual(await backlog(), { pending: 0, waiting: {}, abandoned: 0 })
  assert.match(await look(), /made at the first start/)
  assert.equal(existsSync(path), false)
  assert.equal(existsSync(`${path}.copy`), false)
})

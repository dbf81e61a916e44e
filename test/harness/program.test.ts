import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { temporaryFolder } from './folder.ts'
import { runProgram } from './program.ts'

test('a program of the tests starts where the default port is taken', { timeout: 30_000 }, async t => {
  const other = createServer().listen(8080)
  // Somebody else has it: so much the better.
  await once(other, 'listening').catch(() => {})
  t.after(() => other.close())
  await runProgram(t, {}, { cwd: temporaryFolder(t) })
})

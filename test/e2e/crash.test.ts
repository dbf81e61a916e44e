import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { killUnderLoad } from '../harness/kill.ts'
import { Ledger } from '../harness/ledger.ts'
import { signUp } from '../harness/load.ts'
import { logOf, runProgram } from '../harness/program.ts'
import { seeded, seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'

const KILLS = isSlow ? 20 : 2

test(`killed ${KILLS} times under load, it keeps every acknowledged signup, once, with one event`, async t => {
  const random = seeded(seedOf(t))
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', LOG_LEVEL: 'debug' }
  const ledger = new Ledger()
  const counts: number[] = []

  for (let round = 0; round < KILLS; round++) {
    const program = await runProgram(t, env, { cwd })
    await killUnderLoad(program, { ledger, round, random, most: 500 })
    counts.push(ledger.acknowledged)
    assert.doesNotMatch(program.stdout(), /zebulon|quixote/i, 'no name and no address in the log')
  }
  t.diagnostic(`acknowledged after each kill: ${counts.join(', ')}`)

  const last = await runProgram(t, env, { cwd })
  ledger.assertTrueOf(contactsIn(path))
  assert.equal(
    withDatabase(path, database => database.prepare('pragma integrity_check').get()?.integrity_check),
    'ok',
  )

  const agent = new Agent()
  const again = await signUp(last.baseUrl, agent, ledger.some())
  assert.deepEqual(again, { status: 200, alreadyExisted: true })
  assert.equal(await last.end('SIGTERM'), 0)
  assert.ok(logOf(last).length > 0)
})

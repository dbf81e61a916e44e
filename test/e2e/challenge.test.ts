import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { type Program, runProgram, spawnProgram } from '../harness/program.ts'
import { solved } from '../harness/solve.ts'

const env = {
  HOST: '127.0.0.1',
  PORT: '0',
  RATE_LIMIT: '1000000',
  SHUTDOWN_DELAY: '0',
  CHALLENGE: 'altcha',
}
const VISITORS = 50
const skip = !isSlow && 'takes longer than npm test may'
const SPENT = 'the challenge was used for another signup, please solve a new one'

const solutionFrom = async ({ baseUrl }: Program): Promise<string> =>
  solved(await (await fetch(`${baseUrl}/api/challenge`)).text())

/** What a signup is answered: `new`, `known`, or the status with the sentence. */
async function join(program: Program, email: string, altcha: string): Promise<string> {
  const told = await visit(program, email, { altcha })
  if (told?.status !== 200) return `${told?.status} ${told?.error}`
  return told.alreadyExisted ? 'known' : 'new'
}

/** Of all at once, with one solution and as many addresses, one is let in, and again as often as it asks. */
async function assertOneIsLetIn(program: Program): Promise<void> {
  const solution = await solutionFrom(program)
  const emails = Array.from({ length: VISITORS }, (_, i) => `visitor-${i}@example.com`)
  const answers = await Promise.all(emails.map(email => join(program, email, solution)))
  assert.deepEqual(answers.toSorted(), [...Array(VISITORS - 1).fill(`400 ${SPENT}`), 'new'])
  assert.equal(await join(program, emails[answers.indexOf('new')]!.toUpperCase(), solution), 'known')
  assert.equal(await join(program, 'late@example.com', solution), `400 ${SPENT}`)
}

describe('a challenge under way, on SQLite', () => {
  test('outlives kill -9 of the program that made it; and what was spent stays so', async t => {
    const cwd = temporaryFolder(t)
    const first = await runProgram(t, env, { cwd })
    const [one, other] = [await solutionFrom(first), await solutionFrom(first)]
    assert.equal(await join(first, 'ada@example.com', one), 'new')
    await first.end('SIGKILL')
    const second = await runProgram(t, env, { cwd })
    assert.equal(await join(second, 'bob@example.com', one), `400 ${SPENT}`)
    assert.equal(await join(second, 'ada@example.com', one), 'known')
    assert.equal(await join(second, 'bob@example.com', other), 'new')
    await assertOneIsLetIn(second)
    assert.equal(await second.end('SIGTERM'), 0)
    assert.equal(contactsIn(`${cwd}/data/waitlist.db`).length, 3)
    for (const { stdout, stderr } of [first, second]) assert.doesNotMatch(stdout() + stderr(), /zebulon|example\.com/i)
  })
})

test('without a key that is kept the program does not start, and says why', { skip }, async t => {
  const cwd = temporaryFolder(t)
  const before = await runProgram(t, { ...env, CHALLENGE: 'none' }, { cwd })
  await before.end('SIGTERM')
  withDatabase(`${cwd}/data/waitlist.db`, database =>
    database.exec("create trigger refused before insert on secret begin select raise(abort, 'no room'); end"),
  )
  const { exited, stderr } = spawnProgram(t, env, { cwd, args: ['serve'] })
  assert.equal(await exited, 1)
  assert.match(stderr(), /^waitlist: the key of the challenges could not be kept in the database: .*no room/)
})

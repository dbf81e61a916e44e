import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { type Program, runProgram, spawnProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { solved } from '../harness/solve.ts'

const env = {
  HOST: '127.0.0.1',
  PORT: '0',
  RATE_LIMIT: '1000000',
  SHUTDOWN_DELAY: '0',
  CHALLENGE: 'altcha',
  CHALLENGE_RANGE: '20',
}
const VISITORS = 50
const skip = !isSlow && 'takes longer than npm test may'
const ROUNDS = isSlow ? 5 : 1
const SPENT = 'the challenge was used for another signup, please solve a new one'
const FAILED = 'the challenge was not solved, please try again'

const solutionFrom = async ({ baseUrl }: Program): Promise<string> =>
  solved(await (await fetch(`${baseUrl}/api/challenge`)).text())

/** What a signup is answered: `new`, `known`, or the status with the sentence. */
async function join(program: Program, email: string, altcha: string): Promise<string> {
  const told = await visit(program, email, { altcha })
  if (told?.status !== 200) return `${told?.status} ${told?.error}`
  return told.alreadyExisted ? 'known' : 'new'
}

/** All at once, with one solution and as many addresses: how often each answer was given, and who was let in. */
async function crowd(programs: readonly Program[], round: number, altcha: string) {
  const emails = Array.from({ length: VISITORS }, (_, i) => `visitor-${round}-${i}@example.com`)
  const answers = await Promise.all(emails.map((email, i) => join(programs[i % programs.length]!, email, altcha)))
  const sum: Record<string, number> = {}
  for (const answer of answers) sum[answer] = (sum[answer] ?? 0) + 1
  return { sum, winner: emails[answers.indexOf('new')]! }
}

/** One of them is let in, and again as often as it asks, wherever it asks. */
async function assertOneIsLetIn(programs: readonly Program[]): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const solution = await solutionFrom(programs[0]!)
    const { sum, winner } = await crowd(programs, round, solution)
    assert.deepEqual(sum, { new: 1, [`400 ${SPENT}`]: VISITORS - 1 })
    for (const program of programs) {
      assert.equal(await join(program, winner.toUpperCase(), solution), 'known')
      assert.equal(await join(program, `late-${round}@example.com`, solution), `400 ${SPENT}`)
    }
  }
}

describe('a challenge under way, on SQLite', { timeout: 120_000 }, () => {
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
    await assertOneIsLetIn([second])
    assert.equal(await second.end('SIGTERM'), 0)
    assert.equal(contactsIn(`${cwd}/data/waitlist.db`).length, 2 + ROUNDS)
    for (const { stdout, stderr } of [first, second]) assert.doesNotMatch(stdout() + stderr(), /zebulon|example\.com/i)
  })

  test("a key of the operator's own is another one, until it is taken away again", { skip }, async t => {
    const cwd = temporaryFolder(t)
    const first = await runProgram(t, env, { cwd })
    const solution = await solutionFrom(first)
    await first.end('SIGTERM')
    const second = await runProgram(t, { ...env, CHALLENGE_SECRET: 'zebulons-key' }, { cwd })
    const own = await solutionFrom(second)
    assert.equal(await join(second, 'ada@example.com', solution), `400 ${FAILED}`)
    assert.equal(await join(second, 'ada@example.com', own), 'new')
    await second.end('SIGTERM')
    const third = await runProgram(t, env, { cwd })
    assert.equal(await join(third, 'bob@example.com', own), `400 ${FAILED}`)
    assert.equal(await join(third, 'bob@example.com', solution), 'new')
    for (const { stdout, stderr } of [second, third]) assert.doesNotMatch(stdout() + stderr(), /zebulon|example\.com/i)
  })
})

test('without a key that is kept the program does not start, and says why', { skip, timeout: 60_000 }, async t => {
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

describe('a challenge under way, on two instances over PostgreSQL', { timeout: 120_000, skip }, () => {
  const instance = (t: TestContext, database: string) =>
    runProgram(t, { ...env, DATABASE_URL: database }, { cwd: temporaryFolder(t) })

  test(`${VISITORS} at once with one solution and as many addresses: one is let in, whichever instance made it`, async t => {
    const server = await sharedPostgres()
    const database = await server.database()
    const programs = await Promise.all([instance(t, database), instance(t, database)])
    await assertOneIsLetIn(programs)
    const [first, second] = programs
    const solution = await solutionFrom(first!)
    await first!.end('SIGKILL')
    assert.equal(await join(second!, 'ada@example.com', solution), 'new')
    const third = await instance(t, database)
    assert.equal(await join(third, 'ada@example.com', solution), 'known')
    assert.equal(await join(third, 'bob@example.com', solution), `400 ${SPENT}`)
  })
})

/** What bots do, against the altcha challenge, the holds and the blocked domains. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { type Program, runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { quickSolution, solved } from '../harness/solve.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const CHALLENGE_SECRET = 'a-secret-for-tests-alone-of-more-than-32-characters'
const base = { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', RATE_LIMIT: '1000/1d', CHALLENGE: 'altcha' }

type Solution = 'none' | 'its own' | 'replayed'
type Outcome = 'refused' | 'listed' | 'held'

const signups: readonly (readonly [name: string, email: string, Solution, Outcome])[] = [
  ['Ada', 'a@gmail.com', 'none', 'refused'],
  ['Ben', 'b@gmail.com', 'replayed', 'listed'],
  ['Cy', 'c@gmail.com', 'replayed', 'refused'],
  ['Dan', 'd@outlook.com', 'its own', 'listed'],
  ['https://casino.example/x', 'e@gmail.com', 'its own', 'held'],
  ['www.casino.example', 'f@qq.com', 'its own', 'held'],
  ['Eva', 'e.va@gmail.com', 'its own', 'listed'],
  ['Eva', 'eva+work@gmail.com', 'its own', 'held'],
  ['Fay', 'fay@junk.example', 'its own', 'refused'],
  ['Gus', 'gus@mx1.trash.example', 'its own', 'refused'],
]

test('a solution is good for one signup, and only those who are listed reach the provider and the webhook', async t => {
  const cwd = temporaryFolder(t)
  writeFileSync(join(cwd, 'blocked.txt'), 'junk.example\ntrash.example')
  const fake = loopsFake()
  const vendor = await startReceiver(t, fake.answer)
  const hook = await startReceiver(t, () => ({ status: 204 }))
  const env = {
    ...{ ...base, CHALLENGE_SECRET, HOLD_SUSPICIOUS: 'true', BLOCKED_DOMAINS_FILE: 'blocked.txt' },
    ...{ PROVIDER: 'loops', ...loopsSettings(vendor.url), WEBHOOK_URL: hook.url, WEBHOOK_SECRET: webhookSecret },
  }
  const program = await runProgram(t, env, { cwd })
  const replayed = await quickSolution(CHALLENGE_SECRET)

  for (const [name, email, solution, outcome] of signups) {
    const altcha = solution === 'its own' ? await quickSolution(CHALLENGE_SECRET) : replayed
    const answer = await visit(program, email, { name, ...(solution !== 'none' && { altcha }) })
    assert.equal(answer?.status, outcome === 'refused' ? 400 : 200, email)
    assert.equal(answer?.automationTriggered ?? false, outcome === 'listed', email)
  }

  const emailsOf = (wanted: Outcome) =>
    signups.filter(([, , , outcome]) => outcome === wanted).map(([, email]) => email)
  const listed = emailsOf('listed')
  const notified = () => new Set(hook.received.map(({ json }) => json.data.email as string))
  await until(() => notified().size >= listed.length)
  assert.deepEqual([...notified()].toSorted(), listed.toSorted())
  for (const [, email, , outcome] of signups) assert.equal(fake.count(email), outcome === 'listed' ? 1 : 0, email)
  const stored = contactsIn(join(cwd, 'data', 'waitlist.db')).map(({ email, state }) => [state, email])
  const expected = signups.flatMap(([, email, , outcome]) => (outcome === 'refused' ? [] : [[outcome, email]]))
  assert.deepEqual(stored.toSorted(), expected.toSorted())
})

test('a challenge outlives kill -9 of the program that made it, and a used solution stays used', async t => {
  const cwd = temporaryFolder(t)
  const solution = async ({ baseUrl }: Program) => solved(await (await fetch(`${baseUrl}/api/challenge`)).text())
  const first = await runProgram(t, base, { cwd })
  const [used, unused] = [await solution(first), await solution(first)]
  assert.equal((await visit(first, 'ada@example.com', { altcha: used }))?.alreadyExisted, false)
  await first.end('SIGKILL')
  const second = await runProgram(t, base, { cwd })
  const again = await visit(second, 'bob@example.com', { altcha: used })
  assert.equal(again?.error, 'the challenge was used for another signup, please solve a new one')
  assert.equal((await visit(second, 'ADA@example.com', { altcha: used }))?.alreadyExisted, true)
  assert.equal((await visit(second, 'bob@example.com', { altcha: unused }))?.alreadyExisted, false)
})

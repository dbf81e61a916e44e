import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { quickSolution } from '../harness/solve.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const CHALLENGE_SECRET = 'a-secret-for-tests-alone-of-more-than-32-characters'

/** A solution of its own for each, one for all of them, or none. */
type Solution = 'own' | 'replayed' | 'none'

/** What bots do, with how many of them get through and how many are held; the others are refused. */
const bots: Readonly<
  Record<string, [Solution, through: number, held: number, signups: [name: string, email: string][]]>
> = {
  'without a solution': [
    'none',
    0,
    0,
    [
      ['Ada', 'a@gmail.com'],
      ['Ben', 'b@gmail.com'],
    ],
  ],
  'with one solution for all': [
    'replayed',
    1,
    0,
    [
      ['Ada', 'c@gmail.com'],
      ['Ben', 'd@gmail.com'],
      ['Cy', 'e@gmail.com'],
    ],
  ],
  'with a browser that solves each': [
    'own',
    2,
    0,
    [
      ['Ada', 'f@gmail.com'],
      ['Ben', 'g@outlook.com'],
    ],
  ],
  'with a link in the name': [
    'own',
    0,
    2,
    [
      ['https://casino.example/x', 'h@gmail.com'],
      ['www.casino.example', 'i@qq.com'],
    ],
  ],
  'with spellings of one mailbox': [
    'own',
    1,
    1,
    [
      ['Eva', 'e.va@gmail.com'],
      ['Eva', 'eva+work@gmail.com'],
    ],
  ],
  'with domains that you block': [
    'own',
    0,
    0,
    [
      ['Ada', 'a@junk.example'],
      ['Ben', 'b@mx1.trash.example'],
    ],
  ],
}

test('a solution passes one signup, a mailbox is on the list once, and only who gets through is handed on', async t => {
  const cwd = temporaryFolder(t)
  writeFileSync(join(cwd, 'blocked.txt'), 'junk.example\ntrash.example')
  const fake = loopsFake()
  const tool = await startReceiver(t, fake.answer)
  const hook = await startReceiver(t, () => ({ status: 204 }))
  const env = {
    ...{ HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', RATE_LIMIT: '1000/1d' },
    ...{ CHALLENGE: 'altcha', CHALLENGE_SECRET, HOLD_SUSPICIOUS: 'true', BLOCKED_DOMAINS_FILE: 'blocked.txt' },
    ...{ PROVIDER: 'loops', ...loopsSettings(tool.url), WEBHOOK_URL: hook.url, WEBHOOK_SECRET: webhookSecret },
  }
  const { baseUrl } = await runProgram(t, env, { cwd })
  const replayed = await quickSolution(CHALLENGE_SECRET)
  const through: string[] = []
  const held: string[] = []

  async function send(name: string, email: string, solution: Solution): Promise<void> {
    const altcha = solution === 'own' ? await quickSolution(CHALLENGE_SECRET) : replayed
    const answer = await fetch(`${baseUrl}/api/waitlist`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, email, ...(solution !== 'none' && { altcha }) }),
    })
    const { automationTriggered } = (await answer.json()) as { automationTriggered?: boolean }
    if (answer.status === 200) (automationTriggered ? through : held).push(email)
    else assert.equal(answer.status, 400)
  }

  for (const [what, [solution, passed, kept, signups]] of Object.entries(bots)) {
    const [before, heldBefore] = [through.length, held.length]
    for (const [name, email] of signups) await send(name, email, solution)
    assert.deepEqual([through.length - before, held.length - heldBefore], [passed, kept], what)
  }

  // A delivery may be repeated.
  const told = () => new Set(hook.received.map(({ json }) => json.data.email as string))
  await until(() => told().size >= through.length)
  assert.deepEqual([...told()].toSorted(), through.toSorted())
  const all = Object.values(bots).flatMap(([, , , signups]) => signups.map(([, email]) => email))
  assert.deepEqual(all.filter(email => fake.count(email) === 1).toSorted(), through.toSorted())
  const stored = contactsIn(join(cwd, 'data', 'waitlist.db'))
  const inState = (wanted: string) => stored.filter(({ state }) => state === wanted).map(({ email }) => email)
  assert.deepEqual([inState('listed').toSorted(), inState('held').toSorted()], [through.toSorted(), held.toSorted()])
  assert.equal(stored.length, through.length + held.length)
})

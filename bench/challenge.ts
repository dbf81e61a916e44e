import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { type Challenge, solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { altcha } from '../src/challenges/altcha.ts'
import { PLACE, type RequestShape } from './load.ts'
import { measureBoth, type Round, warmUp } from './measure.ts'
import type { Plan } from './options.ts'
import { type Settings, startService } from './processes.ts'
import { type Comparison, count, type Figure, spread } from './report.ts'
import { challengeGoals, type Goals, newSignup, openLimiter, signup, switchGoals } from './scenarios.ts'

/** Lines of a file of blocked domains, as many as public lists have, several times; unless `--contacts` is fewer. */
const LINES = 1_000_000

/** A domain of strangers, which is no burst, and whose addresses have other spellings. */
const newGmail = signup('Ada Lovelace', `${PLACE}@gmail.com`)

const quick = {
  CHALLENGE: 'altcha',
  CHALLENGE_SECRET: randomBytes(32).toString('hex'),
}

interface Switch {
  readonly name: string
  readonly request: RequestShape
  readonly settings: Settings
  readonly goals?: Goals
  readonly connections?: number
}

const switches = (file: string, lines: number, solved: RequestShape): readonly Switch[] => [
  { name: 'HOLD_ABOVE, nobody is held', request: newSignup, settings: { HOLD_ABOVE: '1000000' } },
  { name: 'HOLD_ABOVE, everybody is held', request: newSignup, settings: { HOLD_ABOVE: '0' } },
  { name: 'HOLD_SUSPICIOUS, nobody is held', request: newGmail, settings: { HOLD_SUSPICIOUS: 'true' } },
  {
    name: `BLOCKED_DOMAINS_FILE of ${count(lines)} lines`,
    request: newSignup,
    settings: { BLOCKED_DOMAINS_FILE: file },
  },
  // One solution is good for one address, so the address is known from the second request on.
  { name: 'a solved CHALLENGE=altcha, known address', request: solved, settings: quick, goals: challengeGoals },
  // An answer takes 25 ms then, so it needs many connections to say what can be taken.
  {
    name: 'DISCLOSE_MEMBERSHIP=false, 512 connections',
    request: newSignup,
    settings: { DISCLOSE_MEMBERSHIP: 'false' },
    connections: 512,
  },
]

/**
 * What a signup costs with each switch against bots, against one without. Both services are restarted in each round, on
 * new files, and all switches are measured in each.
 */
export async function compareSwitches(folder: string, plan: Plan): Promise<readonly Comparison[]> {
  const file = join(folder, 'blocked.txt')
  const lines = Math.min(LINES, plan.contacts)
  await writeDomains(file, lines)
  const measured = switches(file, lines, await solvedSignup()).map(each => ({ ...each, rounds: [] as Round[] }))
  for (let round = 1; round <= plan.rounds; round++) {
    for (const [i, { name, request, settings, connections = 64, rounds }] of measured.entries()) {
      plan.progress(`${name}, round ${round} of ${plan.rounds}`)
      const start = (who: string, more: Settings = {}) => {
        const DATABASE_URL = `sqlite:${join(folder, `${who}-${i}-${round}.db`)}`
        return startService(folder, { ...openLimiter, DATABASE_URL, ...more })
      }
      const servers = { subject: await start('with', settings), baseline: await start('without') }
      const load = { request, status: 200, connections, seconds: plan.seconds }
      for (const server of Object.values(servers)) await warmUp(server, request, load, plan.warmUp)
      rounds.push(await measureBoth(servers, load, (round + i) % 2 === 0))
      for (const server of Object.values(servers)) await server.stop()
    }
  }
  return measured.map(({ name, goals = switchGoals, rounds }) => ({
    name: `signup, with ${name}, against without`,
    goals,
    rounds,
  }))
}

async function writeDomains(file: string, lines: number): Promise<void> {
  const out = createWriteStream(file)
  for (let i = 0; i < lines; i++) {
    if (!out.write(`blocked-${i}.example.net\n`)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
}

async function solutionOf(issued: string): Promise<string> {
  const challenge = JSON.parse(issued) as Challenge
  const solution = await solveChallenge({ challenge, deriveKey })
  return Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')
}

/** Known to every service that is started with the same secret. */
async function solvedSignup(): Promise<RequestShape> {
  const { issue } = altcha(quick.CHALLENGE_SECRET)
  const body = { name: 'Ada Lovelace', email: 'ada@example.com', altcha: await solutionOf(await issue!()) }
  return { method: 'POST', path: '/api/waitlist', body: JSON.stringify(body) }
}

/** What one thread makes and verifies in a second, one after the other. */
export async function altchaFigures({ rounds, seconds, progress }: Plan): Promise<readonly Figure[]> {
  progress('altcha')
  const { issue, verify } = altcha(quick.CHALLENGE_SECRET)
  const solution = await solutionOf(await issue!())
  const { signal } = new AbortController()
  const verified = async () => {
    if ((await verify(solution, null, signal)).is !== 'solved') throw new Error('the solution was not accepted')
  }
  const rates = async (use: () => Promise<unknown>) => {
    const measured: number[] = []
    for (let round = 1; round <= rounds; round++) {
      const start = performance.now()
      let done = 0
      for (; performance.now() - start < seconds * 1_000; done++) await use()
      measured.push((done * 1_000) / (performance.now() - start))
    }
    return measured
  }
  return [
    { name: 'altcha, challenges made a second', value: spread(await rates(() => issue!())) },
    { name: 'altcha, solutions verified a second', value: spread(await rates(verified)) },
  ]
}

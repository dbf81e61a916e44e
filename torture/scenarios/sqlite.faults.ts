import assert from 'node:assert/strict'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isHealthy } from '../../test/harness/instances.ts'
import { Ledger } from '../../test/harness/ledger.ts'
import { type SignupAnswer, signUp } from '../../test/harness/load.ts'
import type { Program } from '../../test/harness/program.ts'
import { assertKept } from '../checker.ts'
import { callsIn, cameIn, type Fault, faultsOf, faulty } from '../faults.ts'
import { command, strace } from '../needs.ts'
import type { Scenario, Scene } from '../scenario.ts'

/** What the file is like when the service starts. */
const beginnings = ['no file', 'a file whose process was killed'] as const
type Beginning = (typeof beginnings)[number]

interface Case extends Fault {
  readonly beginning: Beginning
}

/** Signups one after the other, then as many at once. */
const SIGNUPS = 8
/** Of a file that is there. */
const EARLIER = 20

/** Seconds: for a start; for a stop, where SQLite may try a lock for long; until health tells that nothing can be stored; until it works again. */
const PATIENCE = 15
const STOPPED = 30
const NOTICED = 6
const RECOVERED = 6

/** Services that run beside each other, since each mostly waits. */
const AT_ONCE = 3

export const scenario: Scenario = {
  promise:
    'Whichever file system call fails, once or from then on, nothing acknowledged is lost, and it recovers or ends with a reason.',
  needs: [strace, command('prlimit')],
  weight: 3,
  async run(scene) {
    const earlier = await killed(scene)
    const cases: Case[] = []
    for (const beginning of beginnings) {
      const stage = staged(scene, beginning, earlier)
      const program = await scene.service({}, { cwd: stage.folder, through: faulty(stage.folder) })
      await stage.signUp(program)
      assert.equal(await program.end('SIGTERM'), 0)
      cases.push(...faultsOf(callsIn(stage.folder)).map(fault => ({ ...fault, beginning })))
    }
    const ends = new Map<string, number>()
    const broken = new Map<string, string[]>()
    let tried = 0
    const left = shuffled(cases, scene.random).values()
    const tryAll = async (): Promise<void> => {
      for (const one of left) {
        if (scene.isOver()) return
        tried++
        const { call, answer, nth, lasting, beginning } = one
        try {
          const end = await attempt(scene, one, earlier)
          ends.set(end, (ends.get(end) ?? 0) + 1)
        } catch (error) {
          const what = `${answer} of ${call}: ${(error as Error).message}`
          broken.set(what, [...(broken.get(what) ?? []), `number ${nth}, ${lasting}, ${beginning}`])
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, tryAll))
    return {
      figures: [
        { name: 'faults tried', value: tried },
        { name: 'of all that there are', value: (tried / cases.length) * 100, unit: '%' },
        ...[...ends].sort().map(([name, value]) => ({ name, value })),
      ],
      broken: [...broken].map(([what, which]) => `${what} (${which.length} times, such as ${which[0]}).`),
    }
  },
}

/** @returns how it ended. Throws what was broken. */
async function attempt(scene: Scene, one: Case, earlier: string): Promise<string> {
  const stage = staged(scene, one.beginning, earlier)
  const { folder, ledger } = stage
  // A limit must not cut what Node keeps for the next start.
  const env = { NODE_DISABLE_COMPILE_CACHE: '1' }
  const starting = scene.service(env, { cwd: folder, through: faulty(folder, one) })
  const program = await within(PATIENCE, 'it neither started nor ended', starting).catch((error: Error) => {
    assert.match(error.message, /^the program ended with 1:\n(.*"level":60.*|\s*waitlist: .*)/s)
    return null
  })
  let end = 'it did not start'
  if (program !== null) {
    end = await live(stage, program, one)
    await within(STOPPED, 'it did not stop', program.end('SIGTERM'))
  }
  if (!cameIn(folder, one)) end = 'the fault did not come'
  const again = await within(PATIENCE, 'it did not start again', scene.service({}, { cwd: folder }))
  await assertKept(ledger, `sqlite:${join(folder, 'data', 'waitlist.db')}`)
  assert.equal((await stage.one(again))?.status, 200)
  assert.equal(await again.end('SIGTERM'), 0)
  rmSync(folder, { recursive: true })
  return end
}

async function live(stage: Stage, program: Program, { call, answer, lasting }: Case): Promise<string> {
  const answers = await stage.signUp(program)
  const end = performance.now() + (lasting === 'once' ? RECOVERED : NOTICED) * 1000
  let last = await stage.one(program)
  while (last?.status === 500 && (lasting === 'once' || (await isHealthy(program)))) {
    if (performance.now() > end) {
      throw new Error(lasting === 'once' ? 'it did not recover' : 'health says 200, signups 500')
    }
    await wait(250)
    last = await stage.one(program)
  }
  if (last !== null) {
    assert.ok(!answers.includes(null), 'no answer, and it runs')
    return answers.every(each => each?.status === 200) ? 'nobody noticed' : 'some signups were refused'
  }
  assert.ok(call !== 'pwrite64' || answer === 'EIO', 'a full disk ended it')
  assert.equal(await within(PATIENCE, 'no answer, and it runs', program.exited), null, 'it kills itself')
  assert.match(program.stdout(), /"level":60/)
  return 'it ended'
}

interface Stage {
  readonly folder: string
  readonly ledger: Ledger
  one(program: Program): Promise<SignupAnswer | null>
  /** One after the other, then all at once, until there is no answer. */
  signUp(program: Program): Promise<readonly (SignupAnswer | null)[]>
}

let stages = 0

function staged(scene: Scene, beginning: Beginning, earlier: string): Stage {
  const folder = join(scene.folder, `case-${stages++}`)
  mkdirSync(folder)
  const ledger = new Ledger()
  if (beginning !== 'no file') {
    cpSync(earlier, join(folder, 'data'), { recursive: true })
    for (let i = 0; i < EARLIER; i++)
      ledger.note(`earlier-${i}@quixote.example`, { status: 200, alreadyExisted: false })
  }
  let sent = 0
  const one = async ({ baseUrl }: Program) => {
    const agent = new Agent()
    const email = `visitor-${sent++}@quixote.example`
    const answer = await signUp(baseUrl, agent, email)
    if (answer !== null) assert.ok(answer.status === 200 || answer.status === 500, `answered with ${answer.status}`)
    ledger.note(email, answer)
    return answer
  }
  return {
    folder,
    ledger,
    one,
    async signUp(program) {
      const answers: (SignupAnswer | null)[] = []
      for (let i = 0; i < SIGNUPS && !answers.includes(null); i++) answers.push(await one(program))
      return [...answers, ...(await Promise.all(Array.from({ length: SIGNUPS }, () => one(program))))]
    },
  }
}

/** A database with some contacts, most of which are in its log alone. */
async function killed(scene: Scene): Promise<string> {
  const folder = join(scene.folder, 'earlier')
  mkdirSync(folder)
  const program = await scene.service({}, { cwd: folder })
  const agent = new Agent({ keepAlive: true })
  scene.after(() => agent.destroy())
  for (let i = 0; i < EARLIER; i++) {
    assert.equal((await signUp(program.baseUrl, agent, `earlier-${i}@quixote.example`))?.status, 200)
  }
  await program.end('SIGKILL')
  return join(folder, 'data')
}

function shuffled<T>(all: readonly T[], random: () => number): readonly T[] {
  return all
    .map(each => ({ each, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ each }) => each)
}

async function within<T>(seconds: number, otherwise: string, what: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(otherwise)), seconds * 1000)
  try {
    return await Promise.race([what, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

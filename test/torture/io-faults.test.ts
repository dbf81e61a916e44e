import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { isSlow, noStrace } from '../harness/environment.ts'
import { quickFolder } from '../harness/folder.ts'
import { isHealthy } from '../harness/instances.ts'
import { Ledger, signUp } from '../harness/load.ts'
import { type Program, until } from '../harness/program.ts'
import { assertKept, openScene, type Scene, signUpContinuously, waitForHealth } from './scene.ts'
import { noSmallDisk, smallDisk } from './small-disk.ts'

/** What a call is made to answer. */
const answers = { EIO: 'error=EIO', ENOSPC: 'error=ENOSPC', EDQUOT: 'error=EDQUOT', 'a short write': 'retval=0' }

interface Fault {
  readonly call: string
  readonly answer: keyof typeof answers
  /** Which of these calls, counted from 1. */
  readonly nth: number
  readonly lasts: boolean
  /** Whether there is a file already, of a process that was killed. */
  readonly onFile: boolean
}

/** Faults that are tried, of some thousand. */
const FAULTS = 24
/** Services at a time; each mostly waits. */
const AT_ONCE = 3
/** Signups one after the other, then as many at once. */
const SIGNUPS = 8

test(`${FAULTS} file system calls fail, once or from then on: nothing acknowledged is lost, and the service recovers or ends`, {
  skip: noStrace() || (!isSlow && 'it takes a minute; it runs in .ci/run'),
}, async t => {
  const scene = openScene(t)
  const earlier = join(scene.folder, 'earlier')
  mkdirSync(earlier)
  const first = await scene.start({}, { cwd: earlier })
  const agent = new Agent()
  for (let i = 0; i < SIGNUPS; i++) await signUp(first.baseUrl, agent, `earlier-${i}@quixote.example`)
  await first.end('SIGKILL')

  const faults: Fault[] = []
  for (const onFile of [false, true]) {
    const stage = openStage(scene, onFile ? earlier : null)
    const program = await scene.start({}, { cwd: stage.folder, through: faulty(stage.folder) })
    await stage.signUp(program)
    assert.equal(await program.end('SIGTERM'), 0)
    faults.push(...faultsIn(stage.folder).map(fault => ({ ...fault, onFile })))
  }
  t.diagnostic(`${faults.length} faults are possible`)
  const chosen = Array.from({ length: FAULTS }, () => faults[Math.floor(scene.random() * faults.length)]!).values()
  const tryAll = async () => {
    for (const fault of chosen) await attempt(scene, fault, fault.onFile ? earlier : null)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, tryAll))
})

/** Everything that could fail, where these calls were made. */
function faultsIn(folder: string): Omit<Fault, 'onFile'>[] {
  const counts = new Map<string, number>()
  for (const [, call] of readFileSync(join(folder, 'trace'), 'utf8').matchAll(/^\d+ +(\w+)\(/gm)) {
    counts.set(call!, (counts.get(call!) ?? 0) + 1)
  }
  // SQLite waits ten seconds for a lock that cannot be released, which happens on no local disk.
  counts.delete('fcntl')
  const needRoom = ['pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'fallocate', 'openat', 'mkdir']
  const possible = ([call]: [string, number]) =>
    (Object.keys(answers) as Fault['answer'][]).filter(answer => {
      if (answer === 'a short write') return call === 'pwrite64'
      return answer === 'EIO' || needRoom.includes(call)
    })
  return [...counts].flatMap(entry =>
    possible(entry).flatMap(answer =>
      Array.from({ length: 2 * entry[1] }, (_, i) => ({
        ...{ call: entry[0], answer, nth: 1 + (i >> 1), lasts: i % 2 === 1 },
      })),
    ),
  )
}

/** Runs a program whose calls on the database in this folder are traced, and made to fail. */
function faulty(folder: string, fault?: Fault): readonly string[] {
  const data = join(folder, 'data')
  const files = ['', '-wal', '-shm', '-journal', '-lock'].map(end => join(data, `waitlist.db${end}`))
  const traced = ['strace', '-D', '-f', '-qq', '--seccomp-bpf', '-s', '0', '-e', 'signal=none']
  const paths = [data, ...files].flatMap(path => ['-P', path])
  const inject = () => {
    const { call, answer, nth, lasts } = fault!
    const injection = ['-e', `inject=${call}:${answers[answer]}:when=${nth}${lasts ? '+' : ''}`]
    if (call !== 'pwrite64' || answer === 'EIO') return ['-e', `trace=${call}`, ...injection]
    // Whoever tries another file finds no room either.
    return ['-e', 'trace=pwrite64,write', ...injection, '-e', 'inject=write:error=ENOSPC']
  }
  const calls = fault === undefined ? ['-e', 'trace=%desc,%file'] : inject()
  return [...traced, '-o', join(folder, 'trace'), ...calls, ...paths]
}

async function attempt(scene: Scene, fault: Fault, earlier: string | null): Promise<void> {
  const { call, answer, nth, lasts } = fault
  const what = `${answer} of ${call} number ${nth}${lasts ? ' and all later ones' : ''}, ${earlier ? 'a' : 'no'} file`
  const stage = openStage(scene, earlier)
  // Node's own cache must not be cut.
  const env = { NODE_DISABLE_COMPILE_CACHE: '1' }
  try {
    const program = await scene.start(env, { cwd: stage.folder, through: faulty(stage.folder, fault) }).catch(error => {
      assert.match(error.message, /^the program ended with 1:\n(.*\n)*(.*"level":60|\s*waitlist: )/)
      return null
    })
    if (program !== null) await judge(stage, program, fault)
    const again = await scene.start({}, { cwd: stage.folder })
    assertKept(stage)
    assert.equal((await stage.one(again))?.status, 200)
    assert.equal(await again.end('SIGTERM'), 0)
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`)
  }
  rmSync(stage.folder, { recursive: true })
}

/** It answers with 200 or 500, recovers from a single fault, says in its health what lasts, or ends with a reason. */
async function judge(stage: Stage, program: Program, { call, answer, lasts }: Fault): Promise<void> {
  await stage.signUp(program)
  let last = await stage.one(program)
  await until(async () => {
    if (last?.status !== 500 || (lasts && !(await isHealthy(program)))) return true
    await wait(200)
    last = await stage.one(program)
    return false
  })
  if (last === null) {
    assert.ok(call !== 'pwrite64' || answer === 'EIO', 'a full disk ended it')
    assert.equal(await program.exited, null, 'it kills itself')
    assert.match(program.stdout(), /"level":60/)
  }
  await program.end('SIGTERM')
}

type Stage = ReturnType<typeof openStage>

function openStage({ t }: Scene, earlier: string | null) {
  const folder = quickFolder(t)
  const ledger = new Ledger()
  if (earlier !== null) {
    cpSync(join(earlier, 'data'), join(folder, 'data'), { recursive: true })
    for (let i = 0; i < SIGNUPS; i++) {
      ledger.note(`earlier-${i}@quixote.example`, { status: 200, alreadyExisted: false })
    }
  }
  let sent = 0
  const one = async ({ baseUrl }: Program) => {
    const email = `visitor-${sent++}@quixote.example`
    const answer = await signUp(baseUrl, new Agent(), email)
    assert.ok([200, 500, undefined].includes(answer?.status), `answered with ${answer?.status}`)
    ledger.note(email, answer)
    return answer
  }
  return {
    ...{ folder, path: join(folder, 'data', 'waitlist.db'), ledger, one },
    async signUp(program: Program): Promise<void> {
      for (let i = 0; i < SIGNUPS && (await one(program)) !== null; i++);
      await Promise.all(Array.from({ length: SIGNUPS }, () => one(program)))
    },
  }
}

const MB = 1024 * 1024
/** The service takes no signups with less. */
const FREE = 64 * MB

test('a full disk: signups are refused, health says so, and both end when there is room, also where a reader held the log', {
  skip: noSmallDisk || (!isSlow && 'it takes half a minute; it runs in .ci/run'),
}, async t => {
  const scene = openScene(t)
  const disk = smallDisk(t, 200 * MB)
  const path = join(disk.folder, 'waitlist.db')
  const { baseUrl, end } = await scene.start({ DATABASE_URL: `sqlite:${path}` })
  const load = signUpContinuously(scene, baseUrl, [200, 500])
  for (const free of [0, scene.random() * (FREE - 8 * MB)]) {
    disk.fill(free)
    await waitForHealth(baseUrl, 503)
    disk.empty()
    await waitForHealth(baseUrl, 200)
  }
  const reader = new DatabaseSync(path, { readOnly: true })
  reader.exec('begin; select * from contact limit 1')
  const logSize = () => statSync(`${path}-wal`).size
  await until(() => logSize() > 8 * MB)
  disk.fill(FREE - logSize() / 2)
  await waitForHealth(baseUrl, 503)
  // Nobody but the service releases what the log takes.
  reader.close()
  await waitForHealth(baseUrl, 200)
  await load.stop()
  assertKept({ ...scene, path })
  assert.equal(await end('SIGTERM'), 0)
})

import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { noStrace, skipSlow } from '../harness/environment.ts'
import { noSmallDisk, quickFolder, smallDisk } from '../harness/folder.ts'
import { isHealthy } from '../harness/instances.ts'
import { Ledger, load, visit } from '../harness/load.ts'
import { type Program, until } from '../harness/program.ts'
import { assertKept, type Fixture, openFixture, waitForHealth } from './fixture.ts'

/** Faults that are tried, of some thousand that are possible. */
const FAULTS = 24
/** Services at a time; each mostly waits. */
const AT_ONCE = 3
/** Signups one after the other, then as many at once. */
const SIGNUPS = 8

/** What a call is made to answer. */
const answers = { EIO: 'error=EIO', ENOSPC: 'error=ENOSPC', EDQUOT: 'error=EDQUOT', 'a short write': 'retval=0' }
const needsRoom = new Set(['pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'fallocate', 'openat', 'mkdir'])

interface Fault {
  readonly call: string
  readonly answer: keyof typeof answers
  /** Which of these calls, counted from 1. */
  readonly nth: number
  readonly lasts: boolean
  /** The folder of a process that was killed, in which there is a file already. */
  readonly earlier: string | null
}

test(`${FAULTS} file system calls fail, once or from then on: nothing acknowledged is lost, and the service recovers or ends`, {
  skip: noStrace() || skipSlow,
}, async t => {
  const fixture = openFixture(t)
  const earlier = join(fixture.folder, 'earlier')
  mkdirSync(earlier)
  const first = await fixture.start({}, { cwd: earlier })
  for (let i = 0; i < SIGNUPS; i++) await visit(first, `earlier-${i}@quixote.example`)
  await first.end('SIGKILL')

  const pick = <T>(from: readonly T[]): T => from[Math.floor(fixture.random() * from.length)]!
  const traces = new Map<string | null, { readonly calls: readonly string[]; readonly started: number }>()
  for (const before of [null, earlier]) {
    const trial = openTrial(fixture, before)
    const program = await fixture.start({}, { cwd: trial.folder, through: traced(trial.folder) })
    const started = callsIn(trial.folder).length
    await trial.signUp(program)
    assert.equal(await program.end('SIGTERM'), 0)
    traces.set(before, { calls: callsIn(trial.folder), started })
  }
  const faults = Array.from({ length: FAULTS }, (): Fault => {
    const before = pick([null, earlier])
    const { calls, started } = traces.get(before)!
    // Most calls are those of the start.
    const first = pick([0, started])
    const at = first + Math.floor(fixture.random() * (calls.length - first))
    const call = calls[at]!
    const nth = calls.slice(0, at + 1).filter(each => each === call).length
    const possible = (Object.keys(answers) as Fault['answer'][]).filter(answer =>
      answer === 'a short write' ? call === 'pwrite64' : answer === 'EIO' || needsRoom.has(call),
    )
    return { call, answer: pick(possible), nth, lasts: pick([true, false]), earlier: before }
  }).values()
  const tryAll = async () => {
    for (const fault of faults) await attempt(fixture, fault)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, tryAll))
})

/** The calls that can fail, in their order. */
function callsIn(folder: string): readonly string[] {
  const trace = readFileSync(join(folder, 'trace'), 'utf8')
  const calls = [...trace.matchAll(/^\d+ +(\w+)\(/gm)].map(([, call]) => call!)
  // SQLite waits ten seconds for a lock that cannot be released, which happens on no local disk.
  return calls.filter(call => call !== 'fcntl')
}

/** Runs a program whose calls on the database in this folder are traced, and made to fail. */
function traced(folder: string, fault?: Fault): readonly string[] {
  const data = join(folder, 'data')
  const files = ['', '-wal', '-shm', '-journal', '-lock'].map(end => join(data, `waitlist.db${end}`))
  const strace = ['strace', '-D', '-f', '-qq', '--seccomp-bpf', '-s', '0', '-e', 'signal=none']
  const paths = [data, ...files].flatMap(path => ['-P', path])
  return [...strace, '-o', join(folder, 'trace'), ...expressionsOf(fault).flatMap(each => ['-e', each]), ...paths]
}

function expressionsOf(fault: Fault | undefined): readonly string[] {
  if (fault === undefined) return ['trace=%desc,%file']
  const { call, answer, nth, lasts } = fault
  const injection = `inject=${call}:${answers[answer]}:when=${nth}${lasts ? '+' : ''}`
  if (call !== 'pwrite64' || answer === 'EIO') return [`trace=${call}`, injection]
  // Whoever tries another file finds no room either.
  return ['trace=pwrite64,write', injection, 'inject=write:error=ENOSPC']
}

async function attempt(fixture: Fixture, fault: Fault): Promise<void> {
  const { call, answer, nth, lasts, earlier } = fault
  const what = `${answer} of ${call} number ${nth}${lasts ? ' and all later ones' : ''}, ${earlier ? 'a' : 'no'} file`
  const trial = openTrial(fixture, earlier)
  // Node's own cache must not be cut.
  const env = { NODE_DISABLE_COMPILE_CACHE: '1' }
  try {
    const through = traced(trial.folder, fault)
    const program = await fixture.start(env, { cwd: trial.folder, through }).catch(error => {
      assert.match(error.message, /^the program ended with 1:\n(.*\n)*(.*"level":60|\s*waitlist: )/)
      return null
    })
    if (program !== null) await judge(trial, program, fault)
    const again = await fixture.start({}, { cwd: trial.folder })
    assertKept(trial)
    assert.equal((await trial.one(again))?.status, 200)
    assert.equal(await again.end('SIGTERM'), 0)
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`)
  }
  rmSync(trial.folder, { recursive: true })
}

/** It answers with 200 or 500, recovers from a single fault, says in its health what lasts, or ends with a reason. */
async function judge(trial: Trial, program: Program, { call, answer, lasts }: Fault): Promise<void> {
  await trial.signUp(program)
  let last = await trial.one(program)
  await until(async () => {
    if (last?.status !== 500 || (lasts && !(await isHealthy(program)))) return true
    await wait(200)
    last = await trial.one(program)
    return false
  })
  if (last === null) {
    assert.ok(call !== 'pwrite64' || answer === 'EIO', 'a full disk ended it')
    assert.equal(await program.exited, null, 'it kills itself')
    assert.match(program.stdout(), /"level":60/)
  }
  await program.end('SIGTERM')
}

type Trial = ReturnType<typeof openTrial>

function openTrial({ t }: Fixture, earlier: string | null) {
  const folder = quickFolder(t)
  const ledger = new Ledger()
  if (earlier !== null) {
    cpSync(join(earlier, 'data'), join(folder, 'data'), { recursive: true })
    for (let i = 0; i < SIGNUPS; i++) {
      ledger.note(`earlier-${i}@quixote.example`, { status: 200, alreadyExisted: false })
    }
  }
  let sent = 0
  const one = async (program: Program) => {
    const email = `visitor-${sent++}@quixote.example`
    const answer = await visit(program, email)
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
  skip: noSmallDisk || skipSlow,
}, async t => {
  const fixture = openFixture(t)
  const disk = smallDisk(t, 200 * MB)
  const path = join(disk.folder, 'waitlist.db')
  const { baseUrl, end } = await fixture.start({ DATABASE_URL: `sqlite:${path}` })
  let isOver = false
  const loading = load({
    ledger: fixture.ledger,
    clients: 8,
    round: 0,
    rest: 2,
    to: () => baseUrl,
    goesOn(answer) {
      assert.ok(answer?.status === 200 || answer?.status === 500, `answered with ${answer?.status}`)
      return !isOver
    },
  })
  // It is awaited below.
  loading.catch(() => {})
  for (const free of [0, fixture.random() * (FREE - 8 * MB)]) {
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
  isOver = true
  await loading
  assertKept({ ...fixture, path })
  assert.equal(await end('SIGTERM'), 0)
})

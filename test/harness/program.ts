import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const ours = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))

/** The flags of `npm start`, which bound V8's heap. */
export const heapFlags: readonly string[] = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).scripts.start.match(/--\S+/g)

export interface Program {
  readonly process: ChildProcess
  /** The base URL of its start-up line. */
  readonly baseUrl: string
  readonly stdout: () => string
  readonly stderr: () => string
  /** Sends a signal and resolves with the exit code (null after SIGKILL). */
  end(signal: NodeJS.Signals): Promise<number | null>
  readonly exited: Promise<number | null>
}

export interface RunOptions {
  readonly cwd: string
  readonly args?: string[]
  /** A command that becomes the program (`exec`), such as one that sets a limit first. The process id stays the same. */
  readonly through?: readonly string[]
  /** The program of another folder: a changed copy, or another release. */
  readonly entry?: string
}

/** Runs the program as a user does, with nothing of this process's settings, and waits until it listens. */
export async function runProgram(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  { args = ['serve'], ...options }: RunOptions,
): Promise<Program> {
  const { process: child, stdout, stderr, exited } = spawnProgram(test, env, { args, ...options })
  const baseUrl = await new Promise<string>((resolve, reject) => {
    const look = () => {
      const line = stdout()
        .split('\n')
        .find(line => line.includes('"waitlist is ready"'))
      if (line !== undefined) resolve((JSON.parse(line) as { url: string }).url)
    }
    child.stdout!.on('data', look)
    exited.then(code => reject(new Error(`the program ended with ${code}:\n${stdout()}${stderr()}`)))
  })
  return {
    process: child,
    baseUrl,
    stdout,
    stderr,
    exited,
    end(signal) {
      child.kill(signal)
      return exited
    },
  }
}

/** Runs the program without waiting for it to listen. It takes a free port, unless the settings name one. */
export function spawnProgram(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  { cwd, args = [], through = [], entry = ours }: RunOptions,
) {
  return spawned(test, [...through, process.execPath, ...heapFlags, entry, ...args], { PORT: '0', ...env }, cwd)
}

/** Why nothing can be run on a terminal; the `script` of other systems takes other arguments. */
export const noTerminal =
  !spawnSync('script', ['--version']).stdout?.includes('util-linux') && 'it needs script(1) of util-linux'

/** Runs the program on a terminal of 80 columns. */
export function spawnOnTerminal(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  { cwd, args }: Required<Pick<RunOptions, 'cwd' | 'args'>>,
) {
  const command = `stty cols 80 rows 24 && exec '${process.execPath}' '${ours}' ${args.join(' ')}`
  const script = ['script', '-qec', command, '/dev/null']
  return spawned(test, script, { SHELL: '/bin/sh', TERM: 'xterm-256color', ...env }, cwd)
}

function spawned(
  test: Pick<TestContext, 'after'>,
  [command, ...args]: readonly string[],
  env: Record<string, string>,
  cwd: string,
) {
  const child = spawn(command!, args, { cwd, env: { PATH: process.env.PATH, ...env } })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    out += chunk
  })
  child.stderr.setEncoding('utf8').on('data', chunk => {
    err += chunk
  })
  const exited = once(child, 'close').then(([code]) => code as number | null)
  test.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  })
  return { process: child as ChildProcess, stdout: () => out, stderr: () => err, exited }
}

/** Runs a command to its end. It never shows a stack. */
export async function runCommand(
  test: Pick<TestContext, 'after'>,
  cwd: string,
  args: string[],
  env: Record<string, string> = {},
  input?: string,
  entry = ours,
) {
  const { process: child, exited, stdout, stderr } = spawnProgram(test, env, { cwd, args, entry })
  if (input !== undefined) child.stdin!.end(input)
  const code = await exited
  assert.doesNotMatch(stderr(), /\n\s+at |node:internal/, 'no stack')
  return { code, stdout: stdout(), stderr: stderr() }
}

/** The exit code of a program that was told to stop; "late": an orchestrator would have killed it. */
export const exitInTime = ({ exited }: Pick<Program, 'exited'>): Promise<number | null | 'late'> =>
  Promise.race([exited, wait(20_000, 'late' as const, { ref: false })])

/** The log of a program so far: standard output has nothing but lines of JSON. The last one may still be on its way. */
export function logOf({ stdout }: Pick<Program, 'stdout'>): Record<string, unknown>[] {
  return stdout()
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Record<string, unknown>)
}

/** The warnings and errors of a log, without that of a machine whose folder for temporary files does not last. */
export const complaintsIn = (log: readonly Record<string, unknown>[]) =>
  log.filter(({ level, folder }) => Number(level) >= 40 && folder === undefined)

/** Whether this is in its log so far: what was being written when it ended may stand behind its last line. */
export const hasSaid = (program: Pick<Program, 'stdout'>, message: string): boolean =>
  logOf(program).some(({ msg }) => msg === message)

/** Milliseconds, as long as any test may take: what goes on after a test's own timeout would keep the process alive. */
const LONGEST = 180_000

/** Looks again and again until it is so. The test's own timeout should end it first. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + LONGEST
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`it was not so for ${LONGEST} ms`)
    await wait(50)
  }
}

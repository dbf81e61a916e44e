import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))

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

/** Runs the program as a user does, with nothing of this process's settings, and waits until it listens. */
export async function runProgram(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  { cwd, args = ['serve'] }: { cwd: string; args?: string[] },
): Promise<Program> {
  const { process: child, stdout, stderr, exited } = spawnProgram(test, env, { cwd, args })
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

/** Runs the program without waiting for it to listen. */
export function spawnProgram(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string>,
  { cwd, args = [] }: { cwd: string; args?: string[] },
) {
  const child = spawn(process.execPath, [entry, ...args], { cwd, env: { PATH: process.env.PATH, ...env } })
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

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

/** The service as `npm start` runs it. */
export interface NpmStart {
  /** npm, which leads a process group of its own, as a command typed in a terminal does. */
  readonly npm: ChildProcess
  /** The base URL of the start-up line. */
  readonly baseUrl: string
  readonly stdout: () => string
  readonly stderr: () => string
  /** The exit code of npm, once everything that it started has ended. */
  readonly ended: Promise<number | null>
  /** Sends a signal to npm alone, or to its whole group as a terminal does. */
  send(signal: NodeJS.Signals, to?: 'npm' | 'group'): void
}

/** Types `npm start`, or another command, in `cwd` and waits until the service listens. What is left of it ends with the test. */
export async function npmStart(
  t: Pick<TestContext, 'after'>,
  cwd: string,
  env: Record<string, string> = {},
  command = 'npm start',
): Promise<NpmStart> {
  const [program, ...args] = command.split(' ')
  const npm = spawn(program!, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', ...env },
    detached: true,
  })
  let isOver = false
  // Each process below npm holds its output open until it ends.
  const ended = once(npm, 'close').then(([code]) => {
    isOver = true
    return code as number | null
  })
  const send = (signal: NodeJS.Signals, to: 'npm' | 'group' = 'npm') =>
    void process.kill(to === 'npm' ? npm.pid! : -npm.pid!, signal)
  t.after(() => {
    if (!isOver) send('SIGKILL', 'group')
    return ended
  })
  let stdout = ''
  let stderr = ''
  npm.stderr.setEncoding('utf8').on('data', chunk => {
    stderr += chunk
  })
  const baseUrl = await new Promise<string>((resolve, reject) => {
    npm.stdout.setEncoding('utf8').on('data', chunk => {
      stdout += chunk
      const url = /"url":"([^"]+)"/.exec(stdout)?.[1]
      if (url !== undefined) resolve(url)
    })
    ended.then(code => reject(new Error(`${command} ended with ${code}:\n${stdout}${stderr}`)))
  })
  return { npm, baseUrl, stdout: () => stdout, stderr: () => stderr, ended, send }
}

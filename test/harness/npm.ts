import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder that looks like a clone after `npm ci`, so that nothing is written into this one. */
export function checkout(t: Pick<TestContext, 'after'>): string {
  const folder = join(temporaryFolder(t), 'waitlist')
  mkdirSync(folder)
  for (const each of ['package.json', 'bin', 'src', 'node_modules']) symlinkSync(join(root, each), join(folder, each))
  return folder
}

/** The service as `npm start` runs it. */
export interface NpmStart {
  /** The base URL of the start-up line. */
  readonly baseUrl: string
  readonly stdout: () => string
  /** The exit code of npm, once everything that it started has ended. */
  readonly ended: Promise<number | null>
  /** Sends a signal to npm alone, or to its whole group as a terminal does. */
  send(signal: NodeJS.Signals, to: 'npm' | 'group'): void
}

/** Types `npm start` in `cwd` and waits until the service listens. What is left of it ends with the test. */
export async function npmStart(t: Pick<TestContext, 'after'>, cwd: string): Promise<NpmStart> {
  const { PATH, HOME } = process.env
  // It leads a process group of its own, as a command typed in a terminal does.
  const npm = spawn('npm', ['start'], {
    cwd,
    env: { PATH, HOME, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0' },
    detached: true,
  })
  let isOver = false
  // Each process below npm holds its output open until it ends.
  const ended = once(npm, 'close').then(([code]) => {
    isOver = true
    return code as number | null
  })
  const send = (signal: NodeJS.Signals, to: 'npm' | 'group') =>
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
    ended.then(code => reject(new Error(`npm start ended with ${code}:\n${stdout}${stderr}`)))
  })
  return { baseUrl, stdout: () => stdout, ended, send }
}

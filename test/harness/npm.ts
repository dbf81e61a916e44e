import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder that looks like a clone after `npm ci`, so that nothing is written into this one. */
export function checkout(t: Pick<TestContext, 'after'>, name = 'waitlist'): string {
  const folder = join(temporaryFolder(t), name)
  mkdirSync(folder)
  for (const each of ['package.json', 'bin', 'src', 'node_modules']) symlinkSync(join(root, each), join(folder, each))
  return folder
}

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

/** What a clone has that is not made by a tool. */
const ours = (path: string) => !/^(?:node_modules|dist|data|\.git|\.env)(?:\/|$)/.test(path.slice(root.length))

/** A copy of this clone, in a folder of its own, without what npm installs. */
function cloned(t: Pick<TestContext, 'after'>): string {
  const folder = join(temporaryFolder(t), 'waitlist')
  cpSync(root, folder, { recursive: true, filter: ours })
  return folder
}

/** The package, built in a copy, so that nothing is written into this clone; and the files in it. */
export function packed(t: Pick<TestContext, 'after'>): { readonly tarball: string; readonly files: readonly string[] } {
  const folder = cloned(t)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  execFileSync(process.execPath, ['scripts/build.ts'], { cwd: folder })
  const packing = ['pack', '--json', '--ignore-scripts']
  const told = execFileSync('npm', packing, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const [{ filename, files }] = JSON.parse(told)
  return { tarball: join(folder, filename), files: files.map(({ path }: { path: string }) => path) }
}

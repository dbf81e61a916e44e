import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Answer } from './record.ts'
import { memoryOf } from './resources.ts'

const fileHere = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** All processes that were started and have not ended. They always end with this one. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

function remember(child: ChildProcess): ChildProcess {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

export interface Server {
  readonly port: number
  /** The origin of the operator's listener, where it is set. */
  readonly admin?: string | undefined
  readonly pid: number
  /** Milliseconds from the start of the process until it listened. */
  readonly startTime: number
  stop(): Promise<void>
}

export type Settings = Readonly<Record<string, string>>

/** Temporary files go into the benchmark's folder, so that Node's compile cache begins empty and is removed. */
const env = (folder: string) => ({ PATH: process.env.PATH, TMPDIR: folder })

/** The flags of `npm start`. */
const HEAP = ['--max-semi-space-size=8', '--heap-growing-percent=20']

/** The program as `npm start` runs it, with these settings. `checkout`: the folder of another one than this. */
export async function startService(folder: string, settings: Settings, checkout = fileHere('..')): Promise<Server> {
  const start = performance.now()
  const child = remember(
    spawn(process.execPath, [...HEAP, join(checkout, 'bin/waitlist.js'), 'serve'], {
      cwd: folder,
      env: { ...env(folder), HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', text => {
    said += text
  })
  const ready = await new Promise<{ url: string; admin?: string }>((resolve, reject) => {
    let log = ''
    child.stdout!.setEncoding('utf8').on('data', text => {
      log += text
      const line = log.split('\n').find(line => line.endsWith('}') && line.includes('"waitlist is ready"'))
      if (line !== undefined) resolve(JSON.parse(line))
    })
    child.once('exit', code => reject(new Error(`the service ended with ${code}:\n${log}${said}`)))
  })
  const port = Number(new URL(ready.url).port)
  return { port, admin: ready.admin, pid: child.pid!, startTime: performance.now() - start, stop: () => end(child) }
}

export interface Ended {
  readonly code: number | null
  readonly seconds: number
  /** Bytes of resident memory; 0 outside Linux. */
  readonly peak: number
}

/** A command as an operator types it. */
export async function runCommand(folder: string, settings: Settings, args: readonly string[]): Promise<Ended> {
  const start = performance.now()
  const options = { cwd: folder, env: { ...env(folder), ...settings }, stdio: 'ignore' } as const
  const child = remember(spawn(process.execPath, [fileHere('../bin/waitlist.js'), ...args], options))
  let peak = 0
  const looking = setInterval(() => {
    peak = Math.max(peak, memoryOf(child.pid!).peak || 0)
  }, 20)
  const [code] = await once(child, 'exit').finally(() => clearInterval(looking))
  return { code, seconds: (performance.now() - start) / 1_000, peak }
}

export interface BareServer extends Server {
  answer(answer: Answer): Promise<void>
}

/** With a compile cache, like the service. */
export async function startBare(folder: string): Promise<BareServer> {
  const start = performance.now()
  const cache = { NODE_COMPILE_CACHE: join(folder, 'cache') }
  const child = remember(fork(fileHere('bare.ts'), { execArgv: [], env: { ...env(folder), ...cache } }))
  const { port } = (await replyOf(child)) as { port: number }
  return {
    port,
    pid: child.pid!,
    startTime: performance.now() - start,
    stop: () => end(child),
    async answer(answer) {
      child.send(answer)
      await replyOf(child)
    },
  }
}

/** The next message. A process that ends instead reports why on standard error. */
function replyOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`a process of the benchmark ended with ${code}`))
    child.once('exit', ended)
    child.once('message', message => {
      child.off('exit', ended)
      resolve(message)
    })
  })
}

/** SIGTERM, so that Node writes its compile cache. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

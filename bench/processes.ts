import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answer } from './record.ts'

const fileHere = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Everything that was started and has not ended; ended with this process, whatever happens. */
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
  readonly pid: number
  /** Milliseconds from the start of the process until it listened. */
  readonly startTime: number
  stop(): Promise<void>
}

export type Settings = Readonly<Record<string, string>>

/** The program as `npm start` runs it, with these settings. */
export async function startService(folder: string, settings: Settings): Promise<Server> {
  const start = performance.now()
  const child = remember(
    spawn(process.execPath, [fileHere('../bin/waitlist.js'), 'serve'], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', text => {
    said += text
  })
  const port = await new Promise<number>((resolve, reject) => {
    let log = ''
    child.stdout!.setEncoding('utf8').on('data', text => {
      log += text
      const line = log.split('\n').find(line => line.endsWith('}') && line.includes('"waitlist is ready"'))
      if (line !== undefined) resolve(Number(new URL(JSON.parse(line).url).port))
    })
    child.once('exit', code => reject(new Error(`the service ended with ${code}:\n${log}${said}`)))
  })
  return { port, pid: child.pid!, startTime: performance.now() - start, stop: () => end(child) }
}

export interface BareServer extends Server {
  answer(answer: Answer): Promise<void>
}

/** `cache`: a folder for Node's compile cache, which the service has too. */
export async function startBare(cache: string): Promise<BareServer> {
  const start = performance.now()
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: cache }
  const child = remember(fork(fileHere('bare.ts'), { execArgv: [], env }))
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

/** The next message; a process that ended instead has said why on standard error. */
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

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Answers, Job, Measured } from './job.ts'

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
  /** Milliseconds from the start of the process until it said that it listens. */
  readonly startUp: number
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** The program as `npm start` runs it, with these settings. */
export async function startService(folder: string, settings: Record<string, string>): Promise<Server> {
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
  return { port, pid: child.pid!, startUp: performance.now() - start, stop: signal => end(child, signal) }
}

export interface BareServer extends Server {
  answer(answers: Answers): Promise<void>
}

/** `cache`: a folder for Node's compile cache, which the service has too. */
export async function startBare(cache: string): Promise<BareServer> {
  const start = performance.now()
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: cache }
  const child = remember(fork(fileHere('bare.ts'), { execArgv: [], env }))
  const [{ port }] = (await replyOf(child)) as [{ port: number }]
  return {
    port,
    pid: child.pid!,
    startUp: performance.now() - start,
    stop: signal => end(child, signal),
    async answer(answers) {
      child.send(answers)
      await replyOf(child)
    },
  }
}

export interface VendorServer extends Omit<Server, 'startUp'> {
  /** From now on it answers at once, or never. */
  hangs(hangs: boolean): Promise<void>
}

export async function startVendor(): Promise<VendorServer> {
  const child = remember(fork(fileHere('vendor.ts'), { execArgv: [] }))
  const [{ port }] = (await replyOf(child)) as [{ port: number }]
  return {
    port,
    pid: child.pid!,
    stop: signal => end(child, signal),
    async hangs(hangs) {
      child.send({ hangs })
      await replyOf(child)
    },
  }
}

export interface Generator {
  run(job: Job): Promise<Measured>
  stop(): Promise<void>
}

export function startGenerator(): Generator {
  const child = remember(fork(fileHere('load.ts'), { execArgv: [] }))
  return {
    async run(job) {
      child.send(job)
      const [{ measured, error }] = (await replyOf(child)) as [{ measured?: Measured; error?: string }]
      if (measured === undefined) throw new Error(`the generator failed: ${error}`)
      return measured
    },
    stop: () => end(child),
  }
}

/** The next message; a process that ended instead has said why on standard error. */
async function replyOf(child: ChildProcess): Promise<unknown[]> {
  const over = new AbortController()
  const ended = once(child, 'exit', over).then(([code]) => {
    throw new Error(`a process of the benchmark ended with ${code}`)
  })
  try {
    return await Promise.race([once(child, 'message', over), ended])
  } finally {
    ended.catch(() => {})
    over.abort()
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

export interface Resources {
  /** Bytes of resident memory: now, and at most so far. */
  readonly memory: number
  readonly peakMemory: number
  /** Seconds of processor time, user and system, of all threads since the start. */
  readonly cpu: number
}

/** Linux counts processor time in hundredths of a second here, whatever the kernel's own clock. */
const TICKS = 100

/** What a process uses, from outside. Linux alone has /proc; elsewhere there are no such figures. */
export function resourcesOf(pid: number): Resources | undefined {
  if (process.platform !== 'linux') return undefined
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kibibytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  // The name, in brackets, may hold blanks; after it the 12th and 13th field are user and system time.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return {
    memory: kibibytes('VmRSS'),
    peakMemory: kibibytes('VmHWM'),
    cpu: (Number(fields[11]) + Number(fields[12])) / TICKS,
  }
}

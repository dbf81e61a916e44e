import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { HandshakeJob } from './handshakes.ts'
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

/** The program as `npm start` runs it, with these settings; or another one that says the same when it listens. */
export async function startService(
  folder: string,
  settings: Record<string, string>,
  program: readonly string[] = [fileHere('../bin/waitlist.js'), 'serve'],
): Promise<Server> {
  const start = performance.now()
  const child = remember(
    spawn(process.execPath, program, {
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

/** The same program with one insert for each signup. */
export const startOneInsert = (folder: string, settings: Record<string, string>): Promise<Server> =>
  startService(folder, settings, [fileHere('one-insert.ts')])

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

/** A process that does one job after the other. */
export interface Worker<Job, Done> {
  run(job: Job): Promise<Done>
  stop(): Promise<void>
}

/** The process sends what came of a job, or why nothing did. */
function startWorker<Job extends object, Done>(file: string, name: string): Worker<Job, Done> {
  const child = remember(fork(fileHere(file), { execArgv: [] }))
  return {
    async run(job) {
      child.send(job)
      const [{ done, error }] = (await replyOf(child)) as [{ done?: Done; error?: string }]
      if (done === undefined) throw new Error(`${name} failed: ${error}`)
      return done
    },
    stop: () => end(child),
  }
}

export type Generator = Worker<Job, Measured>
export const startGenerator = (): Generator => startWorker('load.ts', 'the generator')

/** Tells how many signups were answered, each on a TLS connection of its own. */
export type Handshakes = Worker<HandshakeJob, number>
export const startHandshakes = (): Handshakes => startWorker('handshakes.ts', 'the client with TLS')

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

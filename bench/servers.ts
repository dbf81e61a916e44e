import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Answer } from './bare.ts'

export const here = fileURLToPath(new URL('..', import.meta.url))

export interface Server {
  readonly port: number
  readonly pid: number
  /** Milliseconds until it listened. */
  readonly startTime: number
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

function serverOf(child: ChildProcess, port: number, began: number): Server {
  return {
    port,
    pid: child.pid!,
    startTime: performance.now() - began,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      running.delete(child)
    },
  }
}

/** The program of a checkout as `npm start` runs it. */
export async function startService(
  checkout: string,
  folder: string,
  settings: Record<string, string>,
): Promise<Server> {
  const began = performance.now()
  const flags = ['--max-semi-space-size=8', '--heap-growing-percent=20']
  const env = { PATH: process.env.PATH, TMPDIR: folder, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', ...settings }
  const child = spawn(process.execPath, [...flags, join(checkout, 'bin/waitlist.js'), 'serve'], { cwd: folder, env })
  running.add(child)
  let log = ''
  const ready = new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', text => {
      log += text
      const line = log.split('\n').find(line => line.endsWith('}') && line.includes('"waitlist is ready"'))
      if (line !== undefined) resolve(JSON.parse(line).url)
    })
    child.once('exit', code => reject(new Error(`the service ended with ${code}:\n${log}`)))
  })
  child.stderr.resume()
  return serverOf(child, Number(new URL(await ready).port), began)
}

/** The bare server, which gives this answer. */
export async function startBare(answer: Answer): Promise<Server> {
  const began = performance.now()
  const child = fork(fileURLToPath(new URL('bare.ts', import.meta.url)))
  running.add(child)
  const [{ port }] = await once(child, 'message')
  const server = serverOf(child, port, began)
  child.send(answer)
  await once(child, 'message')
  return server
}

/** Seconds of processor time, all threads, in ticks of a hundredth; Linux only. */
export function processorTime(pid: number): number {
  // The name, in brackets, may contain blanks.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Megabytes of resident memory. */
export const memoryOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1_000

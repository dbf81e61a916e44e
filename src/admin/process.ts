import { readdir, readFile } from 'node:fs/promises'
import { type Histogram, histogram, observe } from '../telemetry/telemetry.ts'

/** What this process uses. */
export interface ProcessReading {
  /** Seconds since 1970. */
  readonly startedAt: number
  /** Seconds of processor time so far, of all threads. */
  readonly cpu: number
  /** Bytes. */
  readonly resident: number
  readonly heap: number
  readonly heapUsed: number
  readonly external: number
  /** Seconds so far in which the event loop worked, and in which it waited for work. */
  readonly active: number
  readonly idle: number
  /** Open files and connections, and the most that there may be; null where the system does not say. */
  readonly files: number | null
  readonly mostFiles: number | null
}

export async function readProcess(): Promise<ProcessReading> {
  const [files, mostFiles] = await Promise.all([openFiles(), limitOfFiles()])
  const { user, system } = process.cpuUsage()
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
  const { active, idle } = performance.eventLoopUtilization()
  return {
    startedAt: performance.timeOrigin / 1_000,
    cpu: (user + system) / 1e6,
    resident: rss,
    heap: heapTotal,
    heapUsed,
    external,
    active: active / 1_000,
    idle: idle / 1_000,
    files,
    mostFiles,
  }
}

/** Linux only. */
const openFiles = (): Promise<number | null> =>
  readdir('/proc/self/fd').then(
    names => names.length,
    () => null,
  )

async function limitOfFiles(): Promise<number | null> {
  const limits = await readFile('/proc/self/limits', 'latin1').catch(() => '')
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
  return soft === undefined ? null : Number(soft)
}

/** Milliseconds between two looks. */
const EVERY = 50
/** Seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export interface EventLoop {
  /** By how many seconds this process came too late to what it had to do. */
  readonly delay: Histogram
  stop(): void
}

/** Measures how late a timer is. Node's own measure knows no buckets, and forgets what another reader has not read yet. */
export function eventLoop(): EventLoop {
  const delay = histogram(BOUNDS)
  let due = performance.now() + EVERY
  const timer = setInterval(() => {
    const now = performance.now()
    observe(delay, Math.max(0, now - due) / 1000)
    due = now + EVERY
  }, EVERY).unref()
  return { delay, stop: () => clearInterval(timer) }
}

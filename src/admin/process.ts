import { readdir, readFile } from 'node:fs/promises'
import { histogram, observe } from '../telemetry/telemetry.ts'

export type ProcessReading = Awaited<ReturnType<typeof readProcess>>

/** What this process uses: seconds and bytes; null where the system does not say. */
export async function readProcess() {
  const [files, mostFiles] = await Promise.all([openFiles(), limitOfFiles()])
  const { user, system } = process.cpuUsage()
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
  const { active, idle } = performance.eventLoopUtilization()
  return {
    /** Since 1970. */
    startedAt: performance.timeOrigin / 1_000,
    /** Of all threads. */
    cpu: (user + system) / 1e6,
    resident: rss,
    heap: heapTotal,
    heapUsed,
    external,
    /** How long the event loop worked, and waited for work. */
    active: active / 1_000,
    idle: idle / 1_000,
    /** Open files and connections, and the most that there may be. */
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

/**
 * Measures by how many seconds a timer is late. Node's own measure knows no buckets, and forgets what another reader has not
 * read yet.
 */
export function eventLoop() {
  const delay = histogram(BOUNDS)
  let due = performance.now() + EVERY
  const timer = setInterval(() => {
    const now = performance.now()
    observe(delay, Math.max(0, now - due) / 1000)
    due = now + EVERY
  }, EVERY).unref()
  return { delay, stop: () => clearInterval(timer) }
}

import { readdirSync, readFileSync } from 'node:fs'

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
  const [user, system] = statOf(pid)!.slice(USER)
  return {
    memory: kibibytes('VmRSS'),
    peakMemory: kibibytes('VmHWM'),
    cpu: (user! + system!) / TICKS,
  }
}

/** proc_pid_stat(5), counted from the state, which follows the name. */
const PARENT = 1
const USER = 11

/** Undefined when the process has ended. The name, in brackets, may hold blanks. */
function statOf(pid: number): number[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number)
  } catch {
    return undefined
  }
}

/** Seconds of processor time of a process and its children, those that have ended included; NaN outside Linux. */
export function familyTime(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN
  // Of the parent also what its ended children used: two fields more.
  const fields = [
    statOf(pid)!.slice(USER, USER + 4),
    ...childrenOf(pid).map(each => statOf(each)?.slice(USER, USER + 2)),
  ]
  return fields.flatMap(each => each ?? []).reduce((sum, ticks) => sum + ticks, 0) / TICKS
}

/**
 * Bytes of memory of a process and its children. A page that n processes share counts as one n-th for each of them (the
 * kernel's Pss), so that the shared buffers of PostgreSQL are counted once. NaN outside Linux.
 */
export function familyMemory(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN
  const share = (each: number) => {
    try {
      const rollup = readFileSync(`/proc/${each}/smaps_rollup`, 'utf8')
      return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024
    } catch {
      // It ended while we were counting.
      return 0
    }
  }
  return [pid, ...childrenOf(pid)].reduce((sum, each) => sum + share(each), 0)
}

const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(each => statOf(each)?.[PARENT] === pid)

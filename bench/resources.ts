import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts processor time in hundredths of a second here, whatever the kernel's own clock. */
const TICKS = 100

/** proc_pid_stat(5), counted from the state, which follows the name. */
const PARENT = 1
const USER = 11

/**
 * Seconds of processor time of a process, user and system, all threads. With `family`, its children are included, even
 * those that have ended. NaN outside Linux, since it needs /proc.
 */
export function processorTime(pid: number, family = false): number {
  if (process.platform !== 'linux') return Number.NaN
  // Two more fields: the time of its ended children.
  const ticks = statOf(pid)!.slice(USER, family ? USER + 4 : USER + 2)
  if (family) for (const child of childrenOf(pid)) ticks.push(...(statOf(child)?.slice(USER, USER + 2) ?? []))
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS
}

/** Bytes of resident memory: now, and the peak so far. NaN outside Linux. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  if (process.platform !== 'linux') return { now: Number.NaN, peak: Number.NaN }
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  return { now: bytes('VmRSS'), peak: bytes('VmHWM') }
}

/** Open files and sockets. NaN outside Linux. */
export const descriptorsOf = (pid: number): number =>
  process.platform === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : Number.NaN

/** Undefined when the process has ended. The name, in brackets, may contain blanks. */
function statOf(pid: number): number[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number)
  } catch {
    return undefined
  }
}

const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(each => statOf(each)?.[PARENT] === pid)

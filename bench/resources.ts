import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts processor time in hundredths of a second here, whatever the kernel's own clock. */
const TICKS = 100

/** proc_pid_stat(5), counted from the state, which follows the name. */
const USER = 11

/** Seconds of processor time of a process, user and system, all threads. NaN outside Linux, since it needs /proc. */
export function processorTime(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN
  // The name, in brackets, may contain blanks.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[USER]) + Number(fields[USER + 1])) / TICKS
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

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a call is made to answer: an error, or that it wrote nothing. */
export const answers = { EIO: 'error=EIO', ENOSPC: 'error=ENOSPC', EDQUOT: 'error=EDQUOT', 'a short write': 'retval=0' }

/** Not a call: no file may grow beyond so many bytes. The write that would is cut there, the next one fails. */
const LIMIT = 'file size'

export interface Fault {
  readonly call: string
  readonly answer: keyof typeof answers
  /** Which of these calls, counted from 1; of a file size, bytes. */
  readonly nth: number
  readonly lasting: 'once' | 'from then on'
}

/** Calls that a full disk or a quota can refuse. */
const NEED_ROOM = new Set(['pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'fallocate', 'openat', 'mkdir'])

/** All faults there can be, where each call was made so often. */
export function faultsOf(counts: ReadonlyMap<string, number>): Fault[] {
  const faults: Fault[] = Array.from({ length: 100 }, (_, i) => {
    // Within a page, and within the 24 bytes before it.
    return { call: LIMIT, answer: 'a short write', nth: (i + 1) * 1_999, lasting: 'from then on' }
  })
  for (const [call, count] of counts) {
    // SQLite waits ten seconds for a lock that cannot be given back, as happens on no local disk.
    if (call === 'fcntl') continue
    for (const answer of Object.keys(answers) as (keyof typeof answers)[]) {
      if (answer !== 'EIO' && !NEED_ROOM.has(call)) continue
      if (answer === 'a short write' && call !== 'pwrite64') continue
      for (let nth = 1; nth <= count; nth++) {
        faults.push({ call, answer, nth, lasting: 'once' }, { call, answer, nth, lasting: 'from then on' })
      }
    }
  }
  return faults
}

/** Runs a program whose calls on the database in this folder are noted in `trace`, and made to fail. */
export function faulty(folder: string, fault?: Fault): readonly string[] {
  if (fault?.call === LIMIT) return ['prlimit', `--fsize=${fault.nth}`]
  const data = join(folder, 'data')
  const files = ['', '-wal', '-shm', '-journal', '-lock'].map(end => join(data, `waitlist.db${end}`))
  return [
    ...['strace', '-D', '-f', '-qq', '--seccomp-bpf', '-s', '0', '-e', 'signal=none', '-o', join(folder, 'trace')],
    ...(fault === undefined ? ['-e', 'trace=%desc,%file'] : injected(fault)),
    ...[data, ...files].flatMap(path => ['-P', path]),
  ]
}

function injected({ call, answer, nth, lasting }: Fault): readonly string[] {
  const inject = ['-e', `inject=${call}:${answers[answer]}:when=${nth}${lasting === 'once' ? '' : '+'}`]
  if (call !== 'pwrite64' || answer === 'EIO') return ['-e', `trace=${call}`, ...inject]
  // Whoever asks, by another file, whether there is room is told the same.
  return ['-e', 'trace=pwrite64,write', ...inject, '-e', 'inject=write:error=ENOSPC']
}

/** How often each call was made. */
export function callsIn(folder: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const [, call] of readFileSync(join(folder, 'trace'), 'utf8').matchAll(/^\d+ +(\w+)\(/gm)) {
    counts.set(call!, (counts.get(call!) ?? 0) + 1)
  }
  return counts
}

/** Whether the fault came. */
export const cameIn = (folder: string, { call }: Fault): boolean =>
  call === LIMIT || readFileSync(join(folder, 'trace'), 'utf8').includes('(INJECTED)')

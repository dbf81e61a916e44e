import { createInterface } from 'node:readline'

/** The exit codes of every command; 0: done. */
const FAILED = 1
/** The command line cannot be understood. */
export const MISUSED = 2

/** Reports a failure on standard error. */
export function complain(problem: string, details: readonly string[] = []): void {
  process.stderr.write(`waitlist: ${problem}\n${details.map(detail => `  - ${detail}\n`).join('')}`)
}

/** What was asked for could not be done, or not all of it. */
export function fail(problem: string, details?: readonly string[]): void {
  complain(problem, details)
  process.exitCode = FAILED
}

/** The command line says nothing that could be done. */
export function misused(problem: string): void {
  complain(problem)
  process.exitCode = MISUSED
}

/** Whether there is somebody to ask, and a place to ask it. */
const mayAsk = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY)

/** Whether something may go on that asks first: `yes` answers already, or there is somebody to ask. Complains otherwise. */
export function mayProceed(what: string, yes: boolean): boolean {
  if (yes || mayAsk()) return true
  misused(`There is no terminal to ask on. To ${what} without a question, add --yes.`)
  return false
}

/** Asks on standard error. Anything but yes is a no, and so is the end of the input. */
export async function confirmed(question: string): Promise<boolean> {
  process.stderr.write(`${question} [y/N] `)
  try {
    for await (const line of createInterface({ input: process.stdin })) return /^\s*y(?:es)?\s*$/i.test(line)
  } finally {
    // A terminal that is still read from would keep the process from ending.
    process.stdin.destroy()
  }
  process.stderr.write('\n')
  return false
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Runs what Ctrl-C ends early, instead of ending the process: it aborts the signal, and so does the end of the run. */
export async function untilStopped(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  for (const signal of SIGNALS) process.once(signal, leave)
  try {
    await run(leaving.signal)
  } finally {
    leave()
    for (const signal of SIGNALS) process.off(signal, leave)
  }
}

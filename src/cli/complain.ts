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

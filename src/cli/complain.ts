/** Reports a failure on standard error. */
export function complain(problem: string, details: readonly string[] = []): void {
  process.stderr.write(`waitlist: ${problem}\n${details.map(detail => `  - ${detail}\n`).join('')}`)
}

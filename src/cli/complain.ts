/** Says on standard error what keeps the program from doing its work. */
export function complain(problem: string, details: readonly string[] = []): void {
  process.stderr.write(`waitlist: ${problem}\n${details.map(detail => `  - ${detail}\n`).join('')}`)
}

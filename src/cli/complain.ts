/** Says on standard error what keeps the program from doing its work. */
export function complain(problems: readonly string[]): void {
  process.stderr.write(`waitlist: cannot do that:\n${problems.map(problem => `  - ${problem}\n`).join('')}`)
}

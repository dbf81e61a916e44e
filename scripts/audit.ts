/**
 * Asks the registry for known vulnerabilities and wrong signatures; `.ci/run` calls it. A vulnerability of high severity in
 * what runs in production, or a signature that is not the registry's, ends it with 1. Mirrors may not answer: then it says
 * so, and ends with 0.
 */
import { spawnSync } from 'node:child_process'

/** Milliseconds. */
const TIMEOUT = 30_000

interface Vulnerability {
  readonly name: string
  readonly severity: string
  readonly range: string
}

/** Undefined: there was no answer, which is then said. */
function ask<Answer>(question: string, ...args: readonly string[]): Answer | undefined {
  const { stdout, error } = spawnSync('npm', ['audit', ...args, '--json'], { encoding: 'utf8', timeout: TIMEOUT })
  try {
    const answer = JSON.parse(stdout) as Answer & { error?: { summary: string }; message?: string }
    if (answer.error === undefined && answer.message === undefined) return answer
    console.log(`${question}: the registry does not answer: ${answer.message ?? answer.error?.summary}`)
  } catch {
    console.log(`${question}: the registry does not answer${error === undefined ? '' : `: ${error.message}`}`)
  }
  return undefined
}

function complain(problems: readonly string[]): void {
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
}

const audit = ask<{ vulnerabilities: Record<string, Vulnerability> }>('vulnerabilities', '--omit=dev')
if (audit !== undefined) {
  const found = Object.values(audit.vulnerabilities)
  console.log(`vulnerabilities: ${found.length} in production`)
  const bad = found.filter(({ severity }) => severity === 'high' || severity === 'critical')
  complain(bad.map(({ name, range, severity }) => `${name} ${range} has a vulnerability of ${severity} severity`))
}

const signatures = ask<{ invalid: readonly { name: string; version: string }[] }>('signatures', 'signatures')
if (signatures !== undefined) {
  console.log(`signatures: ${signatures.invalid.length} are wrong`)
  complain(signatures.invalid.map(({ name, version }) => `${name}@${version} is not what its author published`))
}

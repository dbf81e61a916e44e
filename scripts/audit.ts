/**
 * Asks the registry for known vulnerabilities and wrong signatures, and our own list for those of Node.js; `.ci/run` calls it.
 * A vulnerability of high severity in what runs in production, a signature that is not the registry's, or a security release
 * that this Node.js or the oldest that is allowed lacks, ends it with 1. Mirrors may not answer: then it says so, and ends
 * with 0.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { bundled, components, lacking } from '../src/app/runtime.ts'

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

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
for (const versions of [bundled, { node: engines.node.slice(2) as string }]) {
  const lacks = lacking(versions)
  console.log(`Node.js ${versions.node}: lacks ${lacks.length} security releases`)
  complain(lacks.map(({ of, date, ids }) => `the release of ${of} of ${date}: ${ids.join(', ')}`))
}
for (const [name, { readUntil }] of Object.entries(components)) {
  console.log(`security releases of ${name}: read until ${readUntil}`)
}

/**
 * Breaks promises on purpose, one after the other, and shows that a test fails for each: `npm run mutants`, or
 * `npm run mutants -- --only sqlite` for those with that word in their title, group or files.
 */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { globalSetup } from '../test/harness/once.ts'

/** A change of the source that breaks a promise, and the test files of which one must then fail. */
interface Mutant {
  readonly group: string
  /** What is then wrong, in plain words. */
  readonly title: string
  readonly file: string
  readonly from: string
  readonly to: string
  readonly tests: readonly string[]
}

const root = fileURLToPath(new URL('..', import.meta.url))

/** Reads `mutants.diff`. */
function readMutants(): readonly Mutant[] {
  const [, ...groups] = readFileSync(new URL('mutants.diff', import.meta.url), 'utf8').split(/^# /m)
  return groups.flatMap(text => {
    const [heading = '', ...mutants] = text.split(/^## /m)
    return mutants.map(mutant => mutantIn(heading.split('\n', 1)[0]!, mutant.trimEnd().split('\n')))
  })
}

function mutantIn(group: string, [title = '', file = '', ...lines]: readonly string[]): Mutant {
  const after = (sign: string) => lines.filter(line => line.startsWith(sign)).map(line => line.slice(sign.length))
  return { group, title, file, from: after('- ').join('\n'), to: after('+ ').join('\n'), tests: after('red: ') }
}

/** The text of a file with the mutant in it; null: what it replaces is not there exactly once, so the list is stale. */
function mutated({ from, to }: Mutant, source: string): string | null {
  const parts = source.split(from)
  return parts.length === 2 ? parts.join(to) : null
}

/** Milliseconds for a test. */
const TIMEOUT = 180_000
/** Milliseconds for all tests of a mutant: what hangs so that not even the test runner ends it is killed, and is not red. */
const LONGEST = 2 * TIMEOUT
const HANGS = 'they do not end'
/** Mutants at once, each in a copy of the checkout. */
const COPIES = 2

/** Copies what git knows of the checkout, changes that are not committed included. */
function copied(folder: string): string {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean)
  for (const file of files) cpSync(join(root, file), join(folder, file))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** The first test that fails, after which the others are not run; null: none does. */
async function firstFailure(folder: string, tests: readonly string[]): Promise<string | null> {
  const args = ['--test-reporter=tap', `--test-timeout=${TIMEOUT}`, '--test-concurrency=1', ...tests]
  const run = spawn(process.execPath, ['--test', ...args], {
    cwd: folder,
    // A group of its own, which is ended with all that the tests have started.
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(run, 'exit')
  const end = () => process.kill(-run.pid!, 'SIGTERM')
  process.once('exit', end)
  const timer = setTimeout(() => process.kill(-run.pid!, 'SIGKILL'), LONGEST)
  let failure: string | undefined
  for await (const line of createInterface({ input: run.stdout })) {
    if (failure !== undefined) continue
    failure = /^ *not ok \d+ - (?!.*# (?:SKIP|TODO))(.*)$/.exec(line)?.[1]
    if (failure !== undefined && run.exitCode === null) end()
  }
  const [code] = await exited
  clearTimeout(timer)
  process.off('exit', end)
  return failure ?? (code === 0 ? null : HANGS)
}

interface Verdict {
  readonly is: 'red' | 'GREEN' | 'STALE' | 'BROKEN'
  readonly by: string
}

/** In a copy of the checkout. `failing` says which test fails without any mutant; null: none does. */
async function verdictOn(
  mutant: Mutant,
  copy: string,
  failing: (tests: readonly string[], copy: string) => Promise<string | null>,
): Promise<Verdict> {
  const { file } = mutant
  const tests = mutant.tests.filter(test => existsSync(join(copy, test)))
  const path = join(copy, file)
  if (!existsSync(path)) return { is: 'STALE', by: `there is no ${file}` }
  if (tests.length === 0) return { is: 'STALE', by: `there is no ${mutant.tests.join(', ')}` }
  const source = readFileSync(path, 'utf8')
  const text = mutated(mutant, source)
  if (text === null) return { is: 'STALE', by: `${file} has not once: ${mutant.from}` }
  const before = await failing(tests, copy)
  if (before !== null) return { is: 'BROKEN', by: `without the mutant: ${before}` }
  writeFileSync(path, text)
  const by = await firstFailure(copy, tests)
  writeFileSync(path, source)
  if (by === null) return { is: 'GREEN', by: tests.join(', ') }
  // A file that fails as a whole does not load, or crashes: no test says what is wrong.
  return { is: by === HANGS || tests.some(test => by.endsWith(test)) ? 'BROKEN' : 'red', by }
}

async function main(): Promise<void> {
  const { only = '' } = parseArgs({ options: { only: { type: 'string' } } }).values
  const chosen = readMutants().filter(mutant => JSON.stringify(mutant).toLowerCase().includes(only.toLowerCase()))
  const folder = mkdtempSync(join(tmpdir(), 'waitlist-mutants-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

  // For all runs, as `npm test` does it for all of its files.
  await globalSetup()
  const known = new Map<string, Promise<string | null>>()
  const failing = (tests: readonly string[], copy: string) => {
    const key = tests.join()
    return known.get(key) ?? known.set(key, firstFailure(copy, tests)).get(key)!
  }
  const counts: Record<Verdict['is'], number> = { red: 0, GREEN: 0, STALE: 0, BROKEN: 0 }
  const left = chosen.values()
  async function work(copy: string): Promise<void> {
    for (const mutant of left) {
      const began = performance.now()
      const { is, by } = await verdictOn(mutant, copy, failing)
      counts[is]++
      const seconds = Math.round((performance.now() - began) / 1000)
      console.log(`| ${is.padEnd(6)} | ${String(seconds).padStart(3)} s | ${mutant.group}: ${mutant.title} | ${by} |`)
    }
  }
  await Promise.all(Array.from({ length: COPIES }, (_, i) => work(copied(join(folder, String(i))))))
  console.log(JSON.stringify(counts))
  if (counts.GREEN + counts.BROKEN > 0 || chosen.length === 0) process.exitCode = 1
}

await main()

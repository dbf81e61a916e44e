/** `npm run torture`: the usage is in options.ts. Each scenario runs alone, one after the other. */

import { createHash } from 'node:crypto'
import { type Options, readOptions, usage } from './options.ts'
import { tableOf } from './report.ts'
import type { Result, Scenario } from './scenario.ts'
import { names, scenarioNamed } from './scenarios.ts'
import { withScene } from './scene.ts'

/** Seconds that a scenario may take longer than it was given. */
const PATIENCE = 120

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const { list, seconds, seed, only, program } = options()
const scenarios = new Map<string, Scenario>()
for (const name of only.length > 0 ? only : names) {
  const scenario = await scenarioNamed(name)
  if (scenario.byHand === undefined || only.includes(name) || list) scenarios.set(name, scenario)
}
if (list) {
  for (const [name, { promise, byHand }] of scenarios) {
    process.stdout.write(`${name}: ${promise}${byHand === undefined ? '' : ` By hand: ${byHand}`}\n`)
  }
  process.exit()
}

const say = (text: string) => process.stdout.write(`${text}\n`)
for (const [name, { needs = [] }] of scenarios) {
  const lacks = needs.map(need => need()).find(Boolean)
  if (lacks === undefined) continue
  say(`${name} is skipped: ${lacks}`)
  scenarios.delete(name)
}
say(`seed ${seed}`)

const short = [...scenarios].filter(([name, { least = 0 }]) => !only.includes(name) && secondsOf(name) < least)
for (const [name, { least }] of short) {
  say(`${name} is skipped: it needs ${least} s, which are more minutes for all`)
  scenarios.delete(name)
}

const broken: string[] = []
for (const [name, scenario] of scenarios) {
  const mine = secondsOf(name)
  say(`\n${name}: ${scenario.promise}`)
  const start = performance.now()
  const result = await outcome(name, scenario, mine)
  const took = (performance.now() - start) / 1000
  say(`${tableOf(result.figures)}\n${took.toFixed(0)} s`)
  for (const sentence of result.broken ?? []) say(`BROKEN: ${sentence}`)
  if ((result.broken ?? []).length > 0) broken.push(name)
}

for (const name of broken) {
  // As much time as it had: some choices depend on it.
  const again = `--only ${name} --seed ${seed} --minutes ${(secondsOf(name) / 60).toFixed(3)}${program === undefined ? '' : ` --program ${program}`}`
  say(`\n${name} broke its promise. Again: npm run torture -- ${again}`)
}
if (broken.length === 0) say('\nevery promise was held')
process.exit(broken.length === 0 ? 0 : 1)

/** Its choices do not depend on which others run. */
async function outcome(name: string, scenario: Scenario, seconds: number): Promise<Result> {
  const own = createHash('sha256').update(`${seed} ${name}`).digest().readUInt32LE()
  const patience = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => patience.reject(new Error(`it did not end ${PATIENCE} s after its time`)),
    (seconds + PATIENCE) * 1000,
  )
  try {
    return await withScene({ seconds, seed: own, entry: program }, scene =>
      Promise.race([scenario.run(scene), patience.promise]),
    )
  } catch (error) {
    process.stderr.write(`${(error as Error).stack}\n`)
    return { figures: [], broken: [(error as Error).message] }
  } finally {
    clearTimeout(timer)
  }
}

/** Its share. */
function secondsOf(name: string): number {
  const weights = [...scenarios.values()].reduce((sum, { weight = 1 }) => sum + weight, 0)
  return (seconds * (scenarios.get(name)!.weight ?? 1)) / weights
}

function options(): Options {
  try {
    return readOptions(process.argv.slice(2), names)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`)
    process.exit(1)
  }
}

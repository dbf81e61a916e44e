/** `npm run bench`: the usage is in options.ts. Servers and load generator run in their own processes or threads. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compareCheckouts } from './against.ts'
import { altchaFigures, compareSwitches } from './challenge.ts'
import { commandFigures } from './commands.ts'
import { compare } from './compare.ts'
import { crowdFigure } from './crowd.ts'
import { hangingProvider } from './hanging-provider.ts'
import { compareEngines, compareFileSizes } from './large.ts'
import { generator } from './load.ts'
import { machineFacts } from './machine.ts'
import { type Options, readOptions, usage } from './options.ts'
import { type Comparison, comparisonTable, type Figure, figureTable } from './report.ts'
import { restFigure, startFigures } from './rest.ts'
import { scenarios } from './scenarios.ts'

const folder = mkdtempSync(join(tmpdir(), 'waitlist-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const { chosen, against, plan } = options()
const date = new Date().toISOString().slice(0, 10)
const rounds = `${plan.rounds} × ${plan.seconds} s for each server; load from ${generator.name}`
const facts = [...machineFacts(folder), rounds]
const tables: string[] = []

const compared = scenarios.filter(({ group }) => chosen.has(group))
const comparisons: Comparison[] = []
const figures: Figure[] = []
// First, before files of gigabytes are written.
if (chosen.has('start')) figures.push(...(await startFigures(folder, plan)))
if (chosen.has('memory')) figures.push(await restFigure(folder, plan))
if (against !== undefined) comparisons.push(...(await compareCheckouts(compared, against, folder, plan)))
else if (compared.length > 0) {
  const result = await compare(compared, folder, plan)
  facts.push(...result.facts)
  comparisons.push(...result.comparisons)
  figures.push(...result.figures)
}
if (chosen.has('crowd')) figures.push(await crowdFigure(folder, plan))
if (chosen.has('provider')) figures.push(await hangingProvider(folder, plan))
if (chosen.has('commands')) figures.push(...(await commandFigures(folder, plan)))
if (chosen.has('challenge')) {
  comparisons.push(...(await compareSwitches(folder, plan)))
  figures.push(...(await altchaFigures(plan)))
}
if (chosen.has('engines')) {
  const { comparison, figure } = await compareEngines(folder, plan)
  comparisons.push(comparison)
  figures.push(figure)
}
if (chosen.has('large')) comparisons.push(await compareFileSizes(folder, plan))
if (comparisons.length > 0) tables.push(comparisonTable(comparisons, against && 'the other'))
if (figures.length > 0) tables.push(figureTable(figures))

const text = [`Measured on ${date}:\n\n${facts.map(fact => `- ${fact}`).join('\n')}`, ...tables].join('\n\n')
process.stdout.write(`${text}\n`)
process.exit()

function options(): Options {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`)
    process.exit(1)
  }
}

/**
 * `npm run bench`: the service against a bare Node HTTP server that gives the same answers. Servers and load generator
 * are processes of their own; service and baseline are measured one after the other in each round, in changing order.
 *
 *   --quick     a smoke run of a few seconds; its figures mean nothing
 *   --no-large  leaves out the comparison of a large file with a small one
 *   --large     fills the large file to the end, however long that takes
 *   --provider  measures what a provider costs and spoils, and nothing else
 *   --instances measures several instances on PostgreSQL and Redis, and nothing else
 *   --json <file>  with --instances: keeps the raw figures there, for bench/plot.ts
 *   --check     holds the load generator against autocannon instead
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkGenerator } from './check.ts'
import { measureInstances } from './instances.ts'
import { instancesReport } from './instances-report.ts'
import { type Answers, HEALTH } from './job.ts'
import { compareFileSizes } from './large.ts'
import { machineFacts, syncTime } from './machine.ts'
import { measure } from './measure.ts'
import { startBare, startGenerator, startService } from './processes.ts'
import { providerFigures } from './provider.ts'
import { rawText } from './raw.ts'
import { record, requireSame } from './record.ts'
import { type Comparison, comparisonTable, figureTable, isMet, type Round } from './report.ts'
import { knownSignup, largeGoal, openLimiter, type Scenario, scenarios, shutLimiter } from './scenarios.ts'
import { memoryAfterwards, memoryAtRest, ownTemporaryFolder, startUpFigures } from './upkeep.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    large: { type: 'boolean', default: false },
    'no-large': { type: 'boolean', default: false },
    provider: { type: 'boolean', default: false },
    instances: { type: 'boolean', default: false },
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})

const connections = 64
/** Times are in seconds. `longest` bounds the whole run, `patience` the filling of the large file. */
const plan = options.quick
  ? {
      longest: 60,
      rounds: 1,
      seconds: 0.1,
      warmUp: 0,
      starts: 1,
      settle: 0,
      contacts: 2_000,
      patience: 5,
      addresses: 50,
    }
  : {
      longest: options.large ? 1_900 : 500,
      rounds: 5,
      seconds: 2,
      warmUp: 1.5,
      starts: 7,
      settle: 3,
      contacts: 5_000_000,
      addresses: 2_000,
      patience: options.large ? 1_200 : 90,
    }

const say = (text: string) => process.stdout.write(`${text}\n`)
const progress = (text: string) => process.stderr.write(`${text}\n`)

const folder = mkdtempSync(join(tmpdir(), 'waitlist-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
setTimeout(() => {
  progress(`not done after ${plan.longest} s: given up`)
  process.exit(1)
}, plan.longest * 1000).unref()

const sync = syncTime(folder)
const facts = machineFacts(sync)
for (const fact of facts) say(fact)
const settings = ownTemporaryFolder(folder)
if (options.instances) {
  const rounds = `${plan.rounds} rounds of ${plan.seconds} s`
  const parts = { folder, settings, generator: startGenerator(), facts: [...facts, rounds], sync, progress }
  const raw = await measureInstances(parts, plan)
  for (const fact of raw.facts.slice(facts.length)) say(fact)
  say(`\n${instancesReport(raw)}`)
  if (options.json !== undefined) writeFileSync(options.json, rawText(raw))
  process.exit()
}
say(`${connections} connections, ${plan.rounds} rounds of ${plan.seconds} s for each server\n`)

if (options.provider) {
  const bare = await startBare(settings.TMPDIR)
  say(figureTable(await providerFigures({ folder, settings, generator: startGenerator(), bare, progress }, plan)))
  process.exit()
}

progress('start-up')
const startUp = await startUpFigures(folder, settings, plan.starts)

const service = (name: string, limiter: object) =>
  startService(folder, { ...settings, ...limiter, DATABASE_URL: `sqlite:${join(folder, name)}` })
const servers = { open: await service('open.db', openLimiter), shut: await service('shut.db', shutLimiter) }
const bare = await startBare(settings.TMPDIR)
const generator = startGenerator()
const atRest = await memoryAtRest(servers.open, bare, plan.settle)

const measured: { scenario: Scenario; answers: Answers; rounds: Round[] }[] = []
// The first attempt uses up the quota where there is one of 1, and makes the known address known.
for (const { port } of Object.values(servers)) await record(port, knownSignup)
for (const scenario of scenarios) {
  const { port } = servers[scenario.limiter]
  const answers = { GET: await record(port, HEALTH), POST: await record(port, scenario.request) }
  await bare.answer(answers)
  await requireSame(bare.port, scenario.request, answers)
  measured.push({ scenario, answers, rounds: [] })
}

if (options.check) {
  for (const { scenario, answers } of measured) {
    await bare.answer(answers)
    const both = { service: servers[scenario.limiter], bare }
    say(await checkGenerator(scenario, both, generator, { connections, seconds: plan.seconds }))
  }
  process.exit()
}

// Round 0 warms up and is not counted.
for (let round = plan.warmUp > 0 ? 0 : 1; round <= plan.rounds; round++) {
  progress(round === 0 ? 'warming up' : `round ${round} of ${plan.rounds}`)
  const seconds = round === 0 ? plan.warmUp : plan.seconds
  for (const [i, { scenario, answers, rounds }] of measured.entries()) {
    await bare.answer(answers)
    const sample = (server: { port: number; pid: number }) =>
      measure(generator, server, { ...scenario, connections, seconds })
    const bareFirst = (round + i) % 2 === 0
    const before = bareFirst ? await sample(bare) : undefined
    const subject = await sample(servers[scenario.limiter])
    const baseline = before ?? (await sample(bare))
    if (round > 0) rounds.push({ subject, baseline })
  }
}
const afterwards = memoryAfterwards(servers.open, bare)
for (const server of Object.values(servers)) await server.stop()
const provider = await providerFigures({ folder, settings, generator, bare, progress }, plan)
await bare.stop()

const comparisons: Comparison[] = measured.map(({ scenario, rounds }) => ({ ...scenario, rounds }))
if (!options['no-large']) {
  const { contacts, rounds } = await compareFileSizes({ folder, settings, generator, connections, progress }, plan)
  const name = `new signup, ${contacts.toLocaleString('en')} contacts against 1,000`
  comparisons.push({ name, goal: largeGoal, rounds })
}

say(comparisonTable(comparisons))
say('')
say(figureTable([...startUp, atRest, ...afterwards, ...provider]))
const missed = comparisons.filter(comparison => !isMet(comparison)).map(({ name }) => name)
if (!options.quick && missed.length > 0) say(`\nMissed: ${missed.join('; ')}`)
process.exit()

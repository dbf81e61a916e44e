import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type DatabaseServer, startDatabase } from './database.ts'
import { measureBoth, type Round } from './measure.ts'
import type { Plan } from './options.ts'
import { type Server, startBare, startService } from './processes.ts'
import { type Answer, record, requireSame } from './record.ts'
import { type Comparison, type Figure, waitFigure } from './report.ts'
import { memoryOf } from './resources.ts'
import { memoryFigure } from './rest.ts'
import { knownSignup, memoryGoals, newSignup, openLimiter, type Scenario, shutLimiter, waitGoal } from './scenarios.ts'

export interface Compared {
  readonly facts: readonly string[]
  readonly comparisons: readonly Comparison[]
  readonly figures: readonly Figure[]
}

/** Each scenario against the bare server, which sends the answers recorded from the service. */
export async function compare(scenarios: readonly Scenario[], folder: string, plan: Plan): Promise<Compared> {
  const bare = await startBare(folder)
  let database: DatabaseServer | undefined
  const file = join(folder, 'open.db')
  const started = new Map<Scenario['service'], Server>()
  try {
    for (const name of new Set(scenarios.map(({ service }) => service))) {
      if (name === 'postgres') database = await startDatabase()
      const url = { open: `sqlite:${file}`, shut: `sqlite:${join(folder, 'shut.db')}`, postgres: database?.url ?? '' }
      const limiter = name === 'shut' ? shutLimiter : openLimiter
      const server = await startService(folder, { ...limiter, DATABASE_URL: url[name] })
      // Uses up a quota of 1, and makes the known address known.
      await record(server.port, knownSignup)
      started.set(name, server)
    }

    const measured: { scenario: Scenario; answer: Answer; rounds: Round[] }[] = []
    for (const scenario of scenarios) {
      const answer = await record(started.get(scenario.service)!.port, scenario.request)
      await bare.answer(answer)
      await requireSame(bare.port, scenario.request, answer)
      measured.push({ scenario, answer, rounds: [] })
    }

    let signups = 0
    // Round 0 warms up and is not counted.
    for (let round = plan.warmUp > 0 ? 0 : 1; round <= plan.rounds; round++) {
      plan.progress(round === 0 ? 'warming up' : `round ${round} of ${plan.rounds}`)
      for (const [i, { scenario, answer, rounds }] of measured.entries()) {
        const { service, request, status, connections } = scenario
        await bare.answer(answer)
        const seconds = round === 0 ? plan.warmUp : plan.seconds
        const servers = { subject: started.get(service)!, baseline: bare }
        const both = await measureBoth(servers, { request, status, connections, seconds }, (round + i) % 2 === 0)
        if (service === 'open' && request === newSignup) signups += both.subject.requests
        if (round > 0) rounds.push(both)
      }
    }
    if (signups > 0) requireStored(file, signups)

    const figures = measured
      .filter(({ scenario }) => scenario.name === 'new signup')
      .map(({ rounds }) => waitFigure('new signup, p99', rounds, waitGoal))
    const open = started.get('open')
    if (open !== undefined) {
      const [ours, theirs] = [memoryOf(open.pid).peak, memoryOf(bare.pid).peak]
      figures.push(memoryFigure('peak of resident memory', memoryGoals.peak, ours, theirs))
    }
    return {
      facts: database === undefined ? [] : [database.facts],
      comparisons: measured.map(({ scenario: { name, goals }, rounds }) => ({ name, goals, rounds })),
      figures,
    }
  } finally {
    for (const server of [bare, ...started.values()]) await server.stop()
    await database?.remove()
  }
}

/** If they differ, addresses came twice, and some signups were not new. */
function requireStored(file: string, signups: number): void {
  const database = new DatabaseSync(file, { readOnly: true })
  const { contacts } = database.prepare('select count(*) as contacts from contact').get() as { contacts: number }
  database.close()
  if (contacts < signups) throw new Error(`${signups} signups, but ${contacts} contacts`)
}

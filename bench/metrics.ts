import { join } from 'node:path'
import { measureBoth, type Round, warmUp } from './measure.ts'
import type { Plan } from './options.ts'
import { type Server, startService } from './processes.ts'
import type { Comparison } from './report.ts'
import { knownSignup, metricsGoals, newSignup, openLimiter } from './scenarios.ts'

/** Milliseconds between two scrapes: far more often than Prometheus does. */
const SCRAPE = 1_000

/**
 * What a signup costs with the metrics on, and scraped, against one without them. Both services are restarted in each
 * round, on new files, since two processes of the same program may differ by more than the metrics cost.
 */
export async function compareMetrics(folder: string, plan: Plan): Promise<readonly Comparison[]> {
  const scenarios = [
    { name: 'new signup, with metrics against without', request: newSignup, rounds: [] as Round[] },
    { name: 'known address, with metrics against without', request: knownSignup, rounds: [] as Round[] },
  ]
  const load = { status: 200, connections: 64 }
  for (let round = 1; round <= plan.rounds; round++) {
    plan.progress(`metrics, round ${round} of ${plan.rounds}`)
    const start = (name: string, settings: Readonly<Record<string, string>> = {}) =>
      startService(folder, {
        ...openLimiter,
        DATABASE_URL: `sqlite:${join(folder, `${name}-${round}.db`)}`,
        ...settings,
      })
    const servers = { subject: await start('measured', { ADMIN_PORT: '0' }), baseline: await start('unmeasured') }
    const scraping = setInterval(() => scrape(servers.subject), SCRAPE)
    for (const server of Object.values(servers))
      await warmUp(server, knownSignup, { ...load, request: newSignup }, plan.warmUp)
    for (const { request, rounds } of scenarios) {
      rounds.push(await measureBoth(servers, { ...load, request, seconds: plan.seconds }, round % 2 === 0))
    }
    clearInterval(scraping)
    for (const server of Object.values(servers)) await server.stop()
  }
  return scenarios.map(({ name, rounds }) => ({ name, goals: metricsGoals, rounds }))
}

async function scrape({ admin }: Server): Promise<void> {
  const { status } = await fetch(`${admin}/metrics`)
  if (status !== 200) throw new Error(`the metrics were answered with ${status}`)
}

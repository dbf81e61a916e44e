import { join } from 'node:path'
import { startDatabase } from './database.ts'
import { measureBoth, type Round, warmUp } from './measure.ts'
import type { Plan } from './options.ts'
import { type Server, startService } from './processes.ts'
import type { Comparison } from './report.ts'
import { knownSignup, newSignup, openLimiter, type Scenario, shutLimiter } from './scenarios.ts'

/**
 * The service of this checkout against that of another one. Both are restarted in each round, on new files, since two
 * processes of the same program may differ by more than a change brings.
 */
export async function compareCheckouts(
  scenarios: readonly Scenario[],
  other: string,
  folder: string,
  plan: Plan,
): Promise<readonly Comparison[]> {
  const measured = scenarios.map(scenario => ({ scenario, rounds: [] as Round[] }))
  for (let round = 1; round <= plan.rounds; round++) {
    plan.progress(`round ${round} of ${plan.rounds}`)
    for (const [i, { scenario, rounds }] of measured.entries()) {
      const { service, request, status, connections } = scenario
      const load = { request, status, connections, seconds: plan.seconds }
      const end: (() => Promise<void>)[] = []
      const start = async (who: string, checkout?: string): Promise<Server> => {
        const database = service === 'postgres' ? await startDatabase() : null
        const url = database?.url ?? `sqlite:${join(folder, `${who}-${i}-${round}.db`)}`
        const limiter = service === 'shut' ? shutLimiter : openLimiter
        const server = await startService(folder, { ...limiter, DATABASE_URL: url }, checkout)
        end.unshift(server.stop, async () => database?.remove())
        return server
      }
      try {
        const servers = { subject: await start('subject'), baseline: await start('baseline', other) }
        const warm = { ...load, request: service === 'shut' ? request : newSignup }
        for (const server of Object.values(servers)) await warmUp(server, knownSignup, warm, plan.warmUp)
        rounds.push(await measureBoth(servers, load, (round + i) % 2 === 0))
      } finally {
        for (const step of end) await step()
      }
    }
  }
  return measured.map(({ scenario: { name }, rounds }) => ({ name, rounds }))
}

import { join } from 'node:path'
import { CONNECTIONS } from '../src/http/limits.ts'
import { measure, type Sample } from './measure.ts'
import type { Plan } from './options.ts'
import { startService } from './processes.ts'
import { count, type Figure, median, spread } from './report.ts'
import { crowdGoal, newSignup, openLimiter } from './scenarios.ts'

/** Visitors who sign up at once. */
const CROWD = 0.8 * CONNECTIONS

/** How long a crowd waits that signs up over and over, each of them on a connection of their own. */
export async function crowdFigure(folder: string, { rounds, seconds, progress }: Plan): Promise<Figure> {
  const samples: Sample[] = []
  for (let round = 1; round <= rounds; round++) {
    progress(`${count(CROWD)} connections, round ${round} of ${rounds}`)
    const service = await startService(folder, {
      ...openLimiter,
      DATABASE_URL: `sqlite:${join(folder, `crowd-${round}.db`)}`,
      // One client may have a sixteenth of all connections, but not what a proxy brings.
      TRUST_PROXY: '1',
    })
    samples.push(await measure(service, { request: newSignup, status: null, connections: CROWD, seconds: 3 * seconds }))
    await service.stop()
  }
  const waits = samples.map(({ p99 }) => p99)
  const refused = samples.map(({ refused, requests }) => (100 * refused) / requests)
  return {
    name: `new signup, ${count(CROWD)} connections, p99`,
    value: `${spread(waits)} ms; ${spread(refused, 1)} % refused`,
    goal: `≤ ${count(crowdGoal)} ms`,
    met: median(waits) <= crowdGoal,
  }
}

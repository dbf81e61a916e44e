import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CONNECTIONS_OF_CLIENT } from '../src/http/limits.ts'
import { shoot } from './load.ts'
import type { Plan } from './options.ts'
import { startService } from './processes.ts'
import { count, type Figure, median, spread } from './report.ts'
import { hangGoal, health, newSignup, openLimiter } from './scenarios.ts'

/** Visitors who arrive at once: as many connections as one address may have, but for those of the reports. */
const CROWD = CONNECTIONS_OF_CLIENT - 15
/** Milliseconds: how long a signup waits for the provider, and how often the report is asked for meanwhile. */
const TIMEOUT = 8_000
const EVERY = 5

/** Health reports while a crowd waits for a provider that accepts connections and never answers. */
export async function hangingProvider(folder: string, plan: Plan): Promise<Figure> {
  const sockets = new Set<Socket>()
  const vendor = createServer(socket => sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(vendor, 'listening')
  const waits: number[] = []
  for (let round = 1; round <= plan.rounds; round++) {
    plan.progress(`a provider that hangs, round ${round} of ${plan.rounds}`)
    // A new service each time, since one that has noticed the outage answers at once.
    const service = await startService(folder, {
      ...openLimiter,
      DATABASE_URL: `sqlite:${join(folder, `hanging-${round}.db`)}`,
      PROVIDER: 'mailchimp',
      MAILCHIMP_API_KEY: 'benchmark-us1',
      MAILCHIMP_AUDIENCE_ID: 'benchmark',
      MAILCHIMP_BASE_URL: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`,
    })
    waits.push(await healthBesideCrowd(service.port))
    await service.stop()
  }
  vendor.close()
  for (const socket of sockets) socket.destroy()
  return {
    name: `health, p99, while ${count(CROWD)} signups meet a provider that hangs`,
    value: `${spread(waits, 1)} ms`,
    goal: `≤ ${hangGoal} ms`,
    met: median(waits) <= hangGoal,
  }
}

/** The p99 of the health reports, in milliseconds. */
async function healthBesideCrowd(port: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 10 })
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const sent = performance.now()
      const asking = request({ port, host: '127.0.0.1', path: health.path, agent }, answer => {
        if (answer.statusCode !== 200) reject(new Error(`health answered ${answer.statusCode}`))
        answer.resume().on('end', () => resolve(performance.now() - sent))
      })
      asking.on('error', reject).end()
    })
  try {
    // Connected before the crowd comes, as a load balancer is, and warmed up.
    for (let i = 0; i < 50; i++) await Promise.all(Array.from({ length: 10 }, ask))
    const coming = shoot({ port, request: newSignup, status: 502, connections: CROWD, amount: CROWD })
    // By the clock, not after each answer, so that a pause counts for every report that was due in it.
    const waits: Promise<number>[] = []
    for (const until = performance.now() + TIMEOUT; performance.now() < until; await sleep(EVERY)) waits.push(ask())
    const sorted = (await Promise.all(waits)).sort((a, b) => a - b)
    await coming
    return sorted[Math.ceil(sorted.length * 0.99) - 1]!
  } finally {
    agent.destroy()
  }
}

import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { HEALTH } from './job.ts'
import { measure } from './measure.ts'
import { type BareServer, type Generator, startService, startVendor, type VendorServer } from './processes.ts'
import { record, requireSame } from './record.ts'
import { type Figure, median, spread } from './report.ts'
import { resourcesOf } from './resources.ts'
import { crowd, healthGoal, knownSignup, memoryGoals, newSignup, openLimiter } from './scenarios.ts'
import { megabytes, type Settings } from './upkeep.ts'

export interface Parts {
  readonly folder: string
  readonly settings: Settings
  readonly generator: Generator
  readonly bare: BareServer
  progress(text: string): void
}

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
}

/** Milliseconds that a signup waits for the provider; the health report is asked for as long, this often. */
const TIMEOUT = 1_000
const EVERY = 5
/** Signups of one round, one after the other; two calls for each stay within the provider's rate. */
const UNHURRIED = 40
/** At this load the provider's documented rate is the bound, not the service. */
const CONNECTIONS = 10

/** What a provider costs when it answers at once, and what it spoils when it hangs. */
export async function providerFigures(parts: Parts, plan: Plan): Promise<Figure[]> {
  const vendor = await startVendor()
  try {
    return [...(await whileItAnswers(parts, plan, vendor)), ...(await whileItHangs(parts, plan, vendor))]
  } finally {
    await vendor.stop()
  }
}

const serviceWith = (vendor: VendorServer, { folder, settings }: Parts, database: string) =>
  startService(folder, {
    ...{ ...settings, ...openLimiter, DATABASE_URL: `sqlite:${join(folder, database)}` },
    ...{ PROVIDER: 'mailchimp', MAILCHIMP_API_KEY: 'benchmark-us1', MAILCHIMP_AUDIENCE_ID: 'benchmark' },
    ...{ MAILCHIMP_BASE_URL: `http://127.0.0.1:${vendor.port}`, PROVIDER_TIMEOUT: `${TIMEOUT}` },
  })

async function whileItAnswers(parts: Parts, { rounds, seconds }: Plan, vendor: VendorServer): Promise<Figure[]> {
  const { generator, bare, progress } = parts
  progress('a provider that answers')
  const service = await serviceWith(vendor, parts, 'provider.db')
  const answers = { GET: await record(service.port, HEALTH), POST: await record(service.port, newSignup) }
  await bare.answer(answers)
  await requireSame(bare.port, newSignup, answers)

  const cpu: { service: number[]; bare: number[] } = { service: [], bare: [] }
  const waits: { service: number[]; bare: number[] } = { service: [], bare: [] }
  for (let round = 1; round <= rounds; round++) {
    for (const [name, server] of [['service', service] as const, ['bare', bare] as const]) {
      // What was used of the provider's rate is free again.
      if (name === 'service') await new Promise(resolve => setTimeout(resolve, 2 * TIMEOUT))
      const job = { port: server.port, connections: 1, seconds: 0, request: newSignup }
      for (let i = 0; i < UNHURRIED; i++) waits[name].push((await generator.run(job)).p50)
      const sample = { request: newSignup, status: 200, connections: CONNECTIONS, seconds }
      cpu[name].push((await measure(generator, server, sample)).cpu)
    }
  }
  await service.stop()
  const micro = (values: readonly number[]) => `${spread(values, 0)} µs`
  const milli = (values: readonly number[]) => `${spread(values, 2)} ms`
  return [
    { name: 'a signup with a provider, CPU time', value: micro(cpu.service), bare: micro(cpu.bare) },
    { name: 'a signup with a provider, until the answer', value: milli(waits.service), bare: milli(waits.bare) },
  ]
}

/**
 * In each round a service of its own, warmed up with a known address: one that has noticed the outage lets nobody wait.
 * The bare server gives the same answers at once.
 */
async function whileItHangs(parts: Parts, { rounds, warmUp }: Plan, vendor: VendorServer): Promise<Figure[]> {
  const { generator, bare, progress } = parts
  const p99: { service: number[]; bare: number[] } = { service: [], bare: [] }
  const peaks: number[] = []
  for (let round = 1; round <= rounds; round++) {
    progress(`a provider that hangs, round ${round} of ${rounds}`)
    await vendor.hangs(false)
    const service = await serviceWith(vendor, parts, `hanging-${round}.db`)
    await record(service.port, knownSignup)
    if (warmUp > 0) {
      const { port } = service
      await generator.run({ port, connections: 2 * CONNECTIONS, seconds: warmUp, request: knownSignup })
    }
    await vendor.hangs(true)
    p99.service.push(await healthBesideCrowd(service.port, generator))
    const resources = resourcesOf(service.pid)
    if (resources !== undefined) peaks.push(resources.peakMemory)
    const answers = { GET: await record(service.port, HEALTH), POST: await record(service.port, newSignup) }
    await service.stop()
    await bare.answer(answers)
    p99.bare.push(await healthBesideCrowd(bare.port, generator))
  }

  const peak = peaks.length === 0 ? undefined : Math.max(...peaks)
  return [
    {
      name: `health, p99, while ${crowd.toLocaleString('en')} signups meet a provider that hangs`,
      value: `${spread(p99.service, 1)} ms`,
      bare: `${spread(p99.bare, 1)} ms`,
      goal: `≤ ${healthGoal} ms`,
      met: median(p99.service) <= healthGoal,
    },
    {
      name: 'peak of resident memory meanwhile',
      value: megabytes(peak),
      bare: '',
      goal: `≤ ${memoryGoals.after} MB`,
      ...(peak === undefined ? {} : { met: peak <= memoryGoals.after * 1e6 }),
    },
  ]
}

/** The slowest but one hundredth of the health reports, in milliseconds, while a crowd comes at once and is answered 502. */
async function healthBesideCrowd(port: number, generator: Generator): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  try {
    // Connected before the crowd comes, as a load balancer is.
    await Promise.all(Array.from({ length: CONNECTIONS }, () => waitForHealth(port, agent)))
    const coming = generator.run({ port, connections: crowd, seconds: 0, request: newSignup })
    // Asked for by the clock, whether it answers or not: a pause counts for all who come in it.
    const waits: Promise<number>[] = []
    const timer = setInterval(() => waits.push(waitForHealth(port, agent)), EVERY)
    await new Promise(resolve => setTimeout(resolve, TIMEOUT))
    clearInterval(timer)
    const sorted = (await Promise.all(waits)).sort((a, b) => a - b)
    const { statuses } = await coming
    if (statuses[502] !== crowd) throw new Error(`${crowd} answers of 502 expected: ${JSON.stringify(statuses)}`)
    return sorted[Math.ceil(sorted.length * 0.99) - 1]!
  } finally {
    agent.destroy()
  }
}

function waitForHealth(port: number, agent: Agent): Promise<number> {
  const sent = performance.now()
  return new Promise((resolve, reject) => {
    const asking = request({ port, host: '127.0.0.1', path: HEALTH.path, agent }, answer => {
      if (answer.statusCode !== 200) reject(new Error(`health answered ${answer.statusCode}`))
      answer.resume().on('end', () => resolve(performance.now() - sent))
    })
    asking.on('error', reject).end()
  })
}

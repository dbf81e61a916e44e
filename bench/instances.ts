import { randomUUID } from 'node:crypto'
import { request } from 'node:https'
import { fileURLToPath } from 'node:url'
import { redisProgram, startRedis } from '../test/harness/redis.ts'
import { startDatabase } from './database.ts'
import { generator, type Measured, PLACE } from './load.ts'
import type { Plan } from './options.ts'
import { type Server, type Settings, startBare, startService } from './processes.ts'
import { record, requireSame } from './record.ts'
import { median } from './report.ts'
import { processorTime } from './resources.ts'
import { scalingTables } from './scaling.ts'
import { newSignup, openLimiter } from './scenarios.ts'

export type Setup = 'one instance' | 'bare' | 'two instances' | 'limit in Redis' | 'a TLS connection each'

/** One measurement. Processor time is in microseconds for a signup; NaN if unknown or not involved. */
export interface InstanceSample extends Measured {
  readonly setup: Setup
  readonly connections: number
  readonly instance: number
  readonly postgres: number
  readonly redis: number
  /** Bytes of write-ahead log for one signup. */
  readonly log: number
  readonly signupsPerCommit: number
}

interface Subject {
  readonly setup: Setup
  readonly connections: number
  /** The connections are spread evenly over these. */
  readonly servers: readonly Server[]
}

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const certificate = {
  TLS_CERT_FILE: file('../test/fixtures/tls/first.crt'),
  TLS_KEY_FILE: file('../test/fixtures/tls/first.key'),
}

/** New signups with PostgreSQL and Redis, each in its own process on this machine. */
export async function measureInstances(folder: string, plan: Plan) {
  plan.progress('starting PostgreSQL')
  const database = await startDatabase()
  const redis = redisProgram === undefined ? null : await startRedis()
  const started: Server[] = []
  try {
    const instance = async (more: Settings = {}) => {
      const server = await startService(folder, { ...openLimiter, DATABASE_URL: database.url, ...more })
      started.push(server)
      return server
    }
    const [first, second, secure] = [await instance(), await instance(), await instance(certificate)]
    const bare = await startBare(folder)
    started.push(bare)
    const answer = await record(first.port, newSignup)
    await bare.answer(answer)
    await requireSame(bare.port, newSignup, answer)
    const subjects: Subject[] = [1, 8, 64, 256].flatMap(connections => [
      { setup: 'one instance', connections, servers: [first] },
      { setup: 'bare', connections, servers: [bare] },
    ])
    subjects.push({ setup: 'two instances', connections: 64, servers: [first, second] })
    if (redis !== null) {
      const servers = [await instance({ REDIS_URL: redis.url })]
      subjects.push({ setup: 'limit in Redis', connections: 64, servers })
    }
    subjects.push({ setup: 'a TLS connection each', connections: 8, servers: [secure] })

    const samples: InstanceSample[] = []
    // Round 0 warms up and is not counted.
    for (let round = plan.warmUp > 0 ? 0 : 1; round <= plan.rounds; round++) {
      plan.progress(round === 0 ? 'warming up' : `instances, round ${round} of ${plan.rounds}`)
      const seconds = round === 0 ? plan.warmUp : plan.seconds
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const sample = await observe(subject, seconds)
        if (round > 0) samples.push(sample)
      }
    }
    return {
      facts: [database.facts],
      tables: scalingTables(samples, await database.contactSize()),
      samples,
    }
  } finally {
    for (const server of started) await server.stop()
    await redis?.remove()
    await database.remove()
  }

  async function observe({ setup, connections, servers }: Subject, seconds: number): Promise<InstanceSample> {
    const before = await spent()
    const load = { request: newSignup, status: 200, connections: connections / servers.length }
    const measured = await Promise.all(
      servers.map(({ port }) =>
        setup === 'a TLS connection each'
          ? handshakes(port, connections, seconds)
          : generator.run({ ...load, port, seconds }),
      ),
    )
    const after = await spent()
    const sum = (figure: (each: Measured) => number) => measured.reduce((total, each) => total + figure(each), 0)
    const requests = sum(each => each.requests)
    const micro = (part: 'instance' | 'postgres' | 'redis') => ((after[part] - before[part]) * 1e6) / requests
    const stored = setup !== 'bare'
    return {
      setup,
      connections,
      requests,
      refused: sum(each => each.refused),
      seconds: median(measured.map(each => each.seconds)),
      p50: median(measured.map(({ p50 }) => p50)),
      p99: Math.max(...measured.map(({ p99 }) => p99)),
      instance: micro('instance'),
      postgres: stored ? micro('postgres') : Number.NaN,
      redis: setup === 'limit in Redis' ? micro('redis') : Number.NaN,
      log: stored ? (after.log - before.log) / requests : Number.NaN,
      signupsPerCommit: stored ? requests / (after.commits - before.commits) : Number.NaN,
    }

    async function spent() {
      const { time, log, commits } = await database.effort()
      const instance = servers.reduce((total, { pid }) => total + processorTime(pid), 0)
      return { instance, postgres: time, redis: await redisTime(), log, commits }
    }
  }

  /** Seconds of processor time, as reported by Redis. */
  async function redisTime(): Promise<number> {
    const told = String(await redis?.command('info', 'cpu'))
    const part = (name: string) => Number(new RegExp(`^used_cpu_${name}:([\\d.]+)`, 'm').exec(told)?.[1])
    return part('user') + part('sys')
  }
}

/**
 * A new TLS connection for each signup, with a full handshake and no resumption. The client is this process, whose own
 * part of the handshake is not counted.
 */
async function handshakes(port: number, connections: number, seconds: number): Promise<Measured> {
  const start = performance.now()
  const waits: number[] = []
  const { method, path, body } = newSignup
  const headers = { 'content-type': 'application/json' }
  const once = () =>
    new Promise<void>((resolve, reject) => {
      const options = {
        port,
        host: '127.0.0.1',
        method,
        path,
        headers,
        agent: false,
        rejectUnauthorized: false,
      } as const
      const sent = request(options, answer => {
        if (answer.statusCode !== 200) reject(new Error(`answered ${answer.statusCode}`))
        answer.resume().on('end', resolve)
      })
      sent.on('error', reject).end(body!.replace(PLACE, randomUUID()))
    })
  const until = start + seconds * 1000
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < until) {
        const sent = performance.now()
        await once()
        waits.push(performance.now() - sent)
      }
    }),
  )
  const sorted = waits.toSorted((a, b) => a - b)
  const part = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
  return {
    requests: waits.length,
    refused: 0,
    seconds: (performance.now() - start) / 1000,
    p50: part(0.5),
    p99: part(0.99),
  }
}

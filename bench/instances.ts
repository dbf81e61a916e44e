import { fileURLToPath } from 'node:url'
import { redisProgram, startRedis } from '../test/harness/redis.ts'
import { countingProxy } from './counting-proxy.ts'
import { sizeOf, startDatabase } from './database.ts'
import { HEALTH } from './job.ts'
import { observer, type Subject } from './observe.ts'
import { simulatePartitions } from './partitions.ts'
import { type Generator, type Server, startBare, startHandshakes, startOneInsert, startService } from './processes.ts'
import type { Memory, RawFigures, Sample, Traffic } from './raw.ts'
import { record, requireSame } from './record.ts'
import { redisCounters } from './redis-counters.ts'
import { resourcesOf } from './resources.ts'
import { newSignup, openLimiter } from './scenarios.ts'
import type { Settings } from './upkeep.ts'

export interface Surroundings {
  readonly folder: string
  readonly settings: Settings
  readonly generator: Generator
  readonly facts: readonly string[]
  /** Milliseconds of one sync. */
  readonly sync: number
  progress(text: string): void
}

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
  readonly settle: number
  /** Addresses of the simulation with two partitions. */
  readonly addresses: number
}

/** Connections of the generator. The base run has 64. */
const LEVELS = [1, 8, 64, 256]
const CROWD = 64

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const certificate = {
  TLS_CERT_FILE: file('../test/fixtures/tls/first.crt'),
  TLS_KEY_FILE: file('../test/fixtures/tls/first.key'),
}

/** Several instances on PostgreSQL and Redis: everything is a process of its own, and all share this machine. */
export async function measureInstances(parts: Surroundings, plan: Plan): Promise<RawFigures> {
  const { folder, settings, generator, progress } = parts
  progress('starting PostgreSQL')
  const database = await startDatabase()
  const redis = redisProgram === undefined ? null : await startRedis()
  const counters = redis === null ? null : await redisCounters(redis.url)
  try {
    const [url, left, right] = [await database.database(), await database.database(), await database.database()]
    const on = (DATABASE_URL: string, more: Record<string, string> = {}) =>
      startService(folder, { ...settings, ...openLimiter, DATABASE_URL, ...more })
    // The first start of all translates the program, which takes memory; later ones find it in Node's compile cache.
    await (await on(url)).stop('SIGTERM')
    const first = await on(url)
    await sleep(plan.settle)
    const atRest = { instance: memoryOf(first), postgres: database.memory() }
    const second = await on(url)
    const oneInsert = await startOneInsert(folder, { ...settings, ...openLimiter, DATABASE_URL: url })
    const partitions = [
      { url: left, server: await on(left) },
      { url: right, server: await on(right) },
    ]
    // The default quota, another client for each signup: what is remembered of each is remembered for a while.
    const ownQuota = { RATE_LIMIT: '20', RATE_LIMIT_WINDOW: '600', TRUST_PROXY: '1' }
    const remembering = await on(url, ownQuota)
    const sharing = redis === null ? null : await on(url, { ...ownQuota, REDIS_URL: redis.url })
    const redisAtRest = counters?.memory() ?? null
    const bare = await startBare(settings.TMPDIR)
    const answers = { GET: await record(first.port, HEALTH), POST: await record(first.port, newSignup) }
    await bare.answer(answers)
    await requireSame(bare.port, newSignup, answers)

    const clients = { ...newSignup, clients: true }
    const subjects: Subject[] = [
      ...LEVELS.flatMap((connections): Subject[] => [
        { setup: 'one instance', connections, servers: [first], request: newSignup },
        { setup: 'bare', connections, servers: [bare], request: newSignup },
      ]),
      { setup: 'one insert', connections: CROWD, servers: [oneInsert], request: newSignup },
      { setup: 'two instances', connections: CROWD, servers: [first, second], request: newSignup },
      {
        setup: 'two partitions',
        connections: CROWD,
        servers: partitions.map(({ server }) => server),
        request: newSignup,
      },
      { setup: 'memory limiter', connections: CROWD, servers: [remembering], request: clients },
    ]
    if (sharing !== null) {
      subjects.push({ setup: 'redis limiter', connections: CROWD, servers: [sharing], request: clients })
    }
    const observe = observer(generator, database, counters)
    const samples: Sample[] = []
    // Some processes are asked more often than others. Unless all are warm before, those would seem quicker.
    const warming = new Map(subjects.flatMap(subject => subject.servers.map(server => [server, subject])))
    if (plan.warmUp > 0) {
      for (const [server, subject] of warming) {
        progress(`warming up, ${subject.setup}`)
        await observe({ ...subject, connections: LEVELS.at(-1)!, servers: [server] }, 2 * plan.warmUp)
      }
    }
    for (let round = 1; round <= plan.rounds; round++) {
      progress(`instances, round ${round} of ${plan.rounds}`)
      // Every round begins with another one, and every second round goes the other way.
      const turned = subjects.map((_, i) => subjects[(i + round * 5) % subjects.length]!)
      for (const subject of round % 2 === 0 ? turned : turned.toReversed()) {
        samples.push(await observe(subject, plan.seconds))
      }
    }
    const shared = counters === null ? null : await counters.perSignup()
    progress('after a checkpoint')
    const [subject] = subjects.filter(each => each.setup === 'one instance' && each.connections === CROWD)
    for (let round = 1; round <= plan.rounds; round++) {
      await database.checkpoint()
      samples.push(await observe({ ...subject!, setup: 'after a checkpoint' }, plan.seconds))
    }
    const memory: Memory = {
      instanceAtRest: atRest.instance,
      instanceAfterwards: memoryOf(first),
      postgresAtRest: atRest.postgres,
      postgresAfterwards: database.memory(),
      redisAtRest,
      redisAfterwards: counters?.memory() ?? null,
    }
    progress('two partitions')
    const partitioned = await simulatePartitions(partitions, plan.addresses)
    for (const server of [second, oneInsert, remembering, ...partitions.map(({ server }) => server)])
      await server.stop()

    progress('bytes on the wire')
    const traffic = await measureTraffic(url)
    progress('TLS')
    const tls = await measureTls(await on(url, certificate), first)
    const { contacts, bytes, addressIndex } = await sizeOf(url)
    return {
      facts: [...parts.facts, database.facts],
      sync: Math.round(parts.sync * 1000),
      samples,
      traffic,
      memory,
      contacts,
      bytesPerContact: Math.round(bytes),
      addressIndexPerContact: Math.round(addressIndex),
      redis: shared,
      tls,
      partitioned,
    }

    async function measureTraffic(url: string): Promise<Traffic[]> {
      const target = new URL(url)
      const proxy = await countingProxy(Number(target.port))
      target.port = String(proxy.port)
      const service = await on(target.href)
      const measured: Traffic[] = []
      for (const connections of LEVELS) {
        const before = { ...(await database.effort()), sent: proxy.sent(), received: proxy.received() }
        const job = { port: service.port, connections, seconds: plan.seconds, request: newSignup }
        const { requests } = await generator.run(job)
        measured.push({
          connections,
          signupsPerCommit: round(requests / ((await database.effort()).commits - before.commits), 1),
          sent: Math.round((proxy.sent() - before.sent) / requests),
          received: Math.round((proxy.received() - before.received) / requests),
        })
      }
      await service.stop()
      proxy.close()
      return measured
    }

    async function measureTls(secure: Server, plain: Server): Promise<RawFigures['tls']> {
      const handshakes = startHandshakes()
      const connection: number[] = []
      const signup: number[] = []
      // A few at once, so that the batches are alike.
      const connections = 8
      for (let each = 0; each <= plan.rounds; each++) {
        const before = resourcesOf(secure.pid)?.cpu ?? Number.NaN
        const done = await handshakes.run({ port: secure.port, seconds: plan.seconds, atOnce: connections })
        const between = resourcesOf(secure.pid)?.cpu ?? Number.NaN
        const kept = await observe(
          { setup: 'one instance', connections, servers: [plain], request: newSignup },
          plan.seconds,
        )
        if (each === 0) continue
        connection.push(round(((between - before) * 1e6) / done, 1))
        signup.push(kept.waitlist ?? Number.NaN)
      }
      await secure.stop()
      await handshakes.stop()
      return { connection, signup }
    }
  } finally {
    counters?.close()
    await redis?.remove()
    await database.remove()
  }
}

const memoryOf = ({ pid }: Server): number => resourcesOf(pid)?.memory ?? Number.NaN
const sleep = (seconds: number) => new Promise(resolve => setTimeout(resolve, seconds * 1000))
const round = (value: number, digits: number) => Number(value.toFixed(digits))

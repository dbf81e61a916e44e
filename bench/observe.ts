import type { DatabaseServer } from './database.ts'
import type { RequestShape } from './job.ts'
import type { Generator, Server } from './processes.ts'
import type { Sample, Setup } from './raw.ts'
import type { RedisCounters } from './redis-counters.ts'
import { resourcesOf } from './resources.ts'

export interface Subject {
  readonly setup: Setup
  readonly connections: number
  /** The connections are spread evenly over these. */
  readonly servers: readonly Server[]
  readonly request: RequestShape
}

/** Measures a subject once: what its processes, PostgreSQL and Redis spent on each signup. All answers must be 200. */
export function observer(generator: Generator, database: DatabaseServer, redis: RedisCounters | null) {
  return async ({ setup, connections, servers, request }: Subject, seconds: number): Promise<Sample> => {
    const [port, ...otherPorts] = servers.map(server => server.port)
    const ours = () => servers.reduce((sum, { pid }) => sum + (resourcesOf(pid)?.cpu ?? Number.NaN), 0)
    const before = { ours: ours(), database: await database.effort(), redis: redis?.cpu() ?? Number.NaN }
    const measured = await generator.run({ port: port!, otherPorts, connections, seconds, request })
    const after = { ours: ours(), database: await database.effort(), redis: redis?.cpu() ?? Number.NaN }
    const { requests, statuses } = measured
    if (statuses[200] !== requests) throw new Error(`${setup}: should be answered 200: ${JSON.stringify(statuses)}`)
    if (setup === 'redis limiter') redis?.signups(requests)

    const micro = (from: number, to: number) => figure(((to - from) * 1e6) / requests, 1)
    const isBare = setup === 'bare'
    return {
      setup,
      connections,
      signups: requests,
      seconds: Number(measured.seconds.toFixed(3)),
      p50: Number(measured.p50.toFixed(2)),
      p99: Number(measured.p99.toFixed(2)),
      waitlist: micro(before.ours, after.ours),
      postgres: isBare ? null : micro(before.database.cpu, after.database.cpu),
      redis: setup === 'redis limiter' ? micro(before.redis, after.redis) : null,
      busy: Number(measured.busy.toFixed(2)),
      wal: isBare ? 0 : Math.round((after.database.wal - before.database.wal) / requests),
      commits: isBare ? 0 : Number(((after.database.commits - before.database.commits) / requests).toFixed(4)),
    }
  }
}

const figure = (value: number, digits: number): number | null =>
  Number.isNaN(value) ? null : Number(value.toFixed(digits))

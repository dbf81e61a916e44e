/** What so many signups per second need: arithmetic over the measured costs. Nothing here was tried at that size. */

import { figures, levelsOf, type RawFigures, type Sample, spreadOf } from './raw.ts'
import { median } from './report.ts'

/** How much of a core, a disk or a thread a plan uses; the rest is for peaks and for a part that is missing. */
export const BUSY = 0.6
/** Assumed: one round trip to the database in another room, in milliseconds. */
export const ROUND_TRIP = 0.5
/** Assumed: what one PostgreSQL server may have and do. */
export const SERVER = { cores: 16, walPerSecond: 200e6 }
export const DAY = 86_400
/** A client that tried once is remembered by Redis until its quota is full again: RATE_LIMIT_WINDOW / RATE_LIMIT. */
const REMEMBERED = 600 / 20
/** An instance's connections: one for its signups, one each for answers of providers, deliveries, and health. */
export const CONNECTIONS = 4

/** A cost of one signup that falls as more share a commit: `each` + `commit` / signups in the commit. */
export interface SharedCost {
  readonly each: number
  readonly commit: number
}

/** The medians of all numbers of connections. */
const fit = (raw: RawFigures, figure: (sample: Sample) => number | null): SharedCost =>
  line(
    levelsOf(raw, 'one instance').map(connections => ({
      x: median(figures(raw, 'one instance', connections, ({ commits }) => commits)),
      y: median(figures(raw, 'one instance', connections, figure)),
    })),
  )

/** Less than this was not measured: the kernel counts in hundredths of a second, and a short run may show none. */
const LEAST = 1

/** Least squares of the errors in parts, so that the small ones count as much; x is commits for each signup. */
function line(measured: readonly { readonly x: number; readonly y: number }[]): SharedCost {
  const points = measured
    .map(({ x, y }) => ({ x, y: Math.max(y, LEAST) }))
    .map(point => ({ ...point, weight: 1 / point.y ** 2 }))
  const total = points.reduce((sum, { weight }) => sum + weight, 0)
  const mean = (of: (point: { x: number; y: number }) => number) =>
    points.reduce((sum, point) => sum + of(point) * point.weight, 0) / total
  const [x, y] = [mean(point => point.x), mean(point => point.y)]
  const commit = mean(point => (point.x - x) * (point.y - y)) / mean(point => (point.x - x) ** 2)
  return { each: Math.max(0, y - commit * x), commit: Math.max(0, commit) }
}

export const costAt = ({ each, commit }: SharedCost, batch: number): number => each + commit / batch

/** Processor time in microseconds, bytes, and the milliseconds of a commit that do not depend on its size. */
export interface Costs {
  /** With the limit in Redis, where that was measured. */
  readonly waitlist: SharedCost
  /** Of it, what the limit in Redis costs here more than one in memory. */
  readonly limiter: number
  readonly postgres: SharedCost
  readonly wal: SharedCost
  /** Bytes both ways between an instance and PostgreSQL. */
  readonly wire: SharedCost
  readonly handshake: number
  readonly redis: number | null
  readonly pause: number
}

export function costsOf(raw: RawFigures): Costs {
  const postgres = fit(raw, sample => sample.postgres)
  const ofRedis = figures(raw, 'redis limiter', 64, sample => sample.redis)
  const ours = fit(raw, sample => sample.waitlist)
  const limited = (setup: 'redis limiter' | 'memory limiter') => figures(raw, setup, 64, sample => sample.waitlist)
  const limiter =
    ofRedis.length === 0 ? 0 : Math.max(0, median(limited('redis limiter')) - median(limited('memory limiter')))
  return {
    waitlist: { ...ours, each: ours.each + limiter },
    limiter,
    postgres,
    wal: fit(raw, sample => sample.wal),
    wire: line(
      raw.traffic.map(({ signupsPerCommit, sent, received }) => ({ x: 1 / signupsPerCommit, y: sent + received })),
    ),
    handshake: Math.max(0, spreadOf(raw.tls.connection).median - spreadOf(raw.tls.signup).median),
    redis: ofRedis.length === 0 ? null : median(ofRedis),
    pause: ROUND_TRIP + (raw.sync + postgres.commit) / 1000,
  }
}

export interface Needs {
  readonly rate: number
  /** Signups that share a commit. */
  readonly batch: number
  readonly instances: number
  readonly postgresCores: number
  readonly commits: number
  /** Bytes per second. */
  readonly wal: number
  readonly partitions: number
  readonly partitionsBy: 'cores' | 'log'
  readonly connections: number
  readonly handshakeCores: number
  readonly redisCores: number | null
  readonly redisMemory: number | null
}

/**
 * An instance has one commit under way. What arrives meanwhile is the next one: with r signups per second and a commit
 * of `pause` + n × what each signup costs PostgreSQL in any case, n = r × pause / (1 − r × that).
 */
export function batchAt(rate: number, { pause, postgres }: Costs): number {
  const perMs = rate / 1000
  const free = 1 - (perMs * postgres.each) / 1000
  return free <= 0 ? 256 : Math.min(256, Math.max(1, (perMs * pause) / free))
}

export function needsOf(rate: number, raw: RawFigures, costs: Costs = costsOf(raw)): Needs {
  let instances = 1
  let batch = 1
  // More instances mean smaller batches, and those cost more: until neither changes any more.
  for (let i = 0; i < 50; i++) {
    batch = batchAt(rate / instances, costs)
    instances = Math.max(1, Math.ceil((rate * costAt(costs.waitlist, batch)) / (BUSY * 1e6)))
  }
  const postgresCores = (rate * costAt(costs.postgres, batch)) / (BUSY * 1e6)
  const wal = rate * costAt(costs.wal, batch)
  const byCores = Math.ceil(postgresCores / SERVER.cores)
  const byLog = Math.ceil(wal / (BUSY * SERVER.walPerSecond))
  return {
    ...{ rate, batch, instances, postgresCores, wal },
    commits: rate / batch,
    partitions: Math.max(byCores, byLog),
    partitionsBy: byCores > byLog ? 'cores' : 'log',
    connections: instances * CONNECTIONS,
    handshakeCores: (rate * costs.handshake) / (BUSY * 1e6),
    redisCores: costs.redis === null ? null : (rate * costs.redis) / (BUSY * 1e6),
    redisMemory: raw.redis === null ? null : rate * REMEMBERED * raw.redis.perClient,
  }
}

/**
 * What the parts of the service count and measure since the start: each part adds to its own numbers, and the page and the
 * metrics read them. It exists only if there is an `ADMIN_PORT`. Never about a person.
 */
export interface Telemetry {
  readonly requests: Durations
  readonly signups: Record<Outcome, number>
  readonly attempts: Record<Decision, number>
  /** How often the shared limiter failed, so that an attempt was counted by this process alone. */
  readonly limiter: { failures: number }
  readonly connections: Connections
  readonly commits: Commits
  /** The calls to the provider, by how they ended. */
  readonly calls: Record<CallResult, number>
}

/**
 * How a signup was answered; every POST that reached the route has exactly one. `held`: stored, and kept back.
 * `unconfirmed`: stored, and asked to confirm its address, now or before. `kept`: stored, but the provider has not confirmed
 * it. `unsolved`: without a solution of the challenge that is good for it. `blocked`: the domain of its address is not
 * accepted. `refused`: by the provider. `overloaded`: more arrive than can be stored. `failed`: it was not stored.
 */
export const outcomes = [
  'new',
  'held',
  'unconfirmed',
  'known',
  'kept',
  'invalid',
  'unsolved',
  'blocked',
  'refused',
  'limited',
  'overloaded',
  'failed',
] as const
export type Outcome = (typeof outcomes)[number]

/** What the rate limit said to a signup. */
export const decisions = ['admitted', 'refused'] as const
export type Decision = (typeof decisions)[number]

/**
 * Why a connection was cut: its client has more than its share, all places are taken, none is idle to make room, or its
 * client reads no answers.
 */
export const drops = ['overShare', 'overAll', 'refused', 'unread'] as const
export type Drop = (typeof drops)[number]

export interface Connections {
  /** Those that are open now, and those of them that have no request under way. Set by the server. */
  open: () => number
  idle: () => number
  readonly dropped: Record<Drop, number>
}

/** Commits of signups. */
export interface Commits {
  /** One of so many signups was stored within so many seconds. */
  note(seconds: number, signups: number): void
  /** From sending a batch to the database until it was committed and synced. */
  readonly seconds: Histogram
  /** Signups in each. */
  readonly sizes: Histogram
  /** Signups that wait for a commit now. Set by the store. */
  waiting: () => number
}

/** How a call to the provider ended. `notSent`: our own limits kept it back. */
export const results = ['created', 'existing', 'refused', 'unreached', 'unclear', 'misconfigured', 'notSent'] as const
export type CallResult = (typeof results)[number]

/** Seconds. A sync takes from a tenth of a millisecond to some hundred; a signup is refused after five seconds. */
const COMMIT_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
/** Up to the most that one commit takes. */
const SIZE_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048]

const zeros = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map(name => [name, 0])) as Record<Name, number>

function commits(): Commits {
  const seconds = histogram(COMMIT_BOUNDS)
  const sizes = histogram(SIZE_BOUNDS)
  return {
    note(took, signups) {
      observe(seconds, took)
      observe(sizes, signups)
    },
    seconds,
    sizes,
    waiting: () => 0,
  }
}

export const telemetry = (): Telemetry => ({
  requests: durations(),
  signups: zeros(outcomes),
  attempts: zeros(decisions),
  limiter: { failures: 0 },
  connections: { open: () => 0, idle: () => 0, dropped: zeros(drops) },
  commits: commits(),
  calls: zeros(results),
})

/** Observations counted in fixed buckets: plain numbers, which those who measure add to and those who report read. */
export interface Histogram {
  /** The inclusive upper bound of each bucket, ascending. */
  readonly bounds: readonly number[]
  /** How many observations each bucket has, those of the buckets below not among them; one more for what exceeds all. */
  readonly counts: number[]
  sum: number
}

export const histogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: new Array<number>(bounds.length + 1).fill(0),
  sum: 0,
})

export function observe(histogram: Histogram, value: number): void {
  const { bounds, counts } = histogram
  let bucket = 0
  while (bucket < bounds.length && value > bounds[bucket]!) bucket++
  counts[bucket]!++
  histogram.sum += value
}

export const countOf = ({ counts }: Histogram): number => counts.reduce((sum, count) => sum + count, 0)

/** How long requests took, in seconds, by route, method and status: as many as there are, and so a bounded number. */
export interface Durations {
  /** `route` is one of those that it was made with; null: it has none. Methods that are not registered count as `_OTHER`. */
  note(route: string | null, method: string, status: number, seconds: number): void
  all(): readonly Duration[]
}

export interface Duration {
  readonly route: string | null
  readonly method: string
  readonly status: number
  readonly seconds: Histogram
}

/** Seconds. From half a millisecond, since an answer takes about that. */
const BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** OpenTelemetry, semantic conventions for HTTP: those of RFC 9110, PATCH and QUERY; all others have one name. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'] as const
const OTHER = '_OTHER'

function durations(): Durations {
  /** For each route and method, histograms by status. */
  const routes = new Map<string | null, Map<string, Map<number, Histogram>>>()

  function methodsOf(route: string | null): Map<string, Map<number, Histogram>> {
    const methods = new Map([...METHODS, OTHER].map(name => [name, new Map<number, Histogram>()]))
    routes.set(route, methods)
    return methods
  }
  function histogramOf(statuses: Map<number, Histogram>, status: number): Histogram {
    const seconds = histogram(BOUNDS)
    statuses.set(status, seconds)
    return seconds
  }

  return {
    note(route, method, status, seconds) {
      const methods = routes.get(route) ?? methodsOf(route)
      const statuses = methods.get(method) ?? methods.get(OTHER)!
      observe(statuses.get(status) ?? histogramOf(statuses, status), seconds)
    },
    all: () =>
      [...routes].flatMap(([route, methods]) =>
        [...methods].flatMap(([method, statuses]) =>
          [...statuses].map(([status, seconds]) => ({ route, method, status, seconds })),
        ),
      ),
  }
}

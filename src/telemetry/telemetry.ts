import { type Durations, durations } from './durations.ts'
import { type Histogram, histogram, observe } from './histogram.ts'

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
 * `kept`: stored, but the provider has not confirmed it. `unsolved`: without a solution of the challenge that is good for
 * it. `blocked`: the domain of its address is not accepted. `refused`: by the provider. `overloaded`: more arrive than can
 * be stored. `failed`: it was not stored.
 */
export const outcomes = [
  'new',
  'held',
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

import { Counter, collectDefaultMetrics, Histogram, Registry } from '@prometheus-io/client'
import type { Provider } from '../delivery/destination.ts'

/**
 * How a signup was answered; each POST that reaches the route has exactly one. `kept`: stored, but the provider has not taken
 * it yet. `refused`: by the provider. `overloaded`: more arrive than can be stored. `failed`: not stored.
 */
const outcomes = [
  ...(['new', 'known', 'held', 'unconfirmed', 'kept'] as const),
  ...(['invalid', 'unsolved', 'blocked', 'refused', 'limited', 'overloaded', 'failed'] as const),
]
export type Outcome = (typeof outcomes)[number]

/** Seconds. An answer takes about half a millisecond, and a signup is refused after five seconds. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export type Telemetry = ReturnType<typeof openTelemetry>

/** What this process counts and measures while it runs. It exists only with `ADMIN_LISTEN`, and knows no person. */
export function openTelemetry() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const requests = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the head of a request to its answer.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets,
    registers,
  })
  const signups = new Counter({
    name: 'waitlist_signups_total',
    help: 'Signups by how they were answered.',
    labelNames: ['outcome'],
    registers,
  })
  for (const outcome of outcomes) signups.inc({ outcome }, 0)
  const commits = new Histogram({
    name: 'waitlist_store_commit_seconds',
    help: 'Time to store a batch of signups, sync included.',
    buckets,
    registers,
  })
  const calls = new Counter({
    name: 'waitlist_provider_calls_total',
    help: 'Contacts handed over to the provider, by the result.',
    labelNames: ['result'],
    registers,
  })
  return {
    registry,
    /** `route` is a path of the API; null: an unknown path. */
    countRequest(route: string | null, method: string, status: number, seconds: number): void {
      const labels = { http_request_method: method, http_route: route ?? '', http_response_status_code: status }
      requests.observe(labels, seconds)
    },
    countSignup: (outcome: Outcome): void => signups.inc({ outcome }),
    countCommit: (seconds: number): void => commits.observe(seconds),
    /** The same provider, whose calls are counted by how they end. */
    counted: (provider: Provider | null): Provider | null =>
      provider && {
        ...provider,
        async create(...call) {
          const creation = await provider.create(...call)
          calls.inc({ result: creation.is.replace(' ', '_') })
          return creation
        },
      },
  }
}

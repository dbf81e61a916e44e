import { type Gauge, Registry } from '@prometheus-io/client'
import { contactStates, deliveryStates, holdReasons } from '../signup/contact.ts'
import { countOf, type Histogram } from '../telemetry/telemetry.ts'
import type { Counts } from '../waitlist/alerts/counts.ts'
import type { Reading } from './reading.ts'

export type Format = 'text' | 'OpenMetrics'

const contentTypes = { text: Registry.PROMETHEUS_CONTENT_TYPE, OpenMetrics: Registry.OPENMETRICS_CONTENT_TYPE } as const

type Labels = Readonly<Record<string, string>>

interface Sample {
  /** A part of a histogram has a name of its own. */
  readonly metricName?: string
  readonly labels: Labels
  readonly value: number
}

interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly values: readonly Sample[]
}

/** Destinations that have series of their own, beside those that are set: the store may know others from earlier. */
const EARLIER = 20

/** A reading in the words of Prometheus. Everything was counted elsewhere, so each scrape has a registry of its own. */
export async function metrics(reading: Reading, format: Format): Promise<{ type: string; body: string }> {
  const registry = new Registry(contentTypes[format])
  for (const metric of all(reading)) {
    // What the registry asks of a metric; in OpenMetrics it renames counters first.
    const collector = { ...metric, get: () => collector }
    registry.registerMetric(collector as unknown as Gauge)
  }
  return { type: registry.contentType, body: await registry.metrics() }
}

function all(reading: Reading): readonly Metric[] {
  const { requests, signups, attempts, limiter, connections, commits, calls } = reading.telemetry
  const { store, counts, destinations, provider, process: own, eventLoop } = reading
  return [
    histograms(
      'http_server_request_duration_seconds',
      'How long requests took, from their head until they were answered. Those refused before routing are not among them.',
      requests.all().map(({ route, method, status, seconds }) => ({
        labels: {
          http_request_method: method,
          ...(route === null ? {} : { http_route: route }),
          http_response_status_code: String(status),
        },
        of: seconds,
      })),
    ),
    counter(
      'waitlist_signups_total',
      'Signups by how they were answered: each POST to the waitlist has one outcome.',
      byName('outcome', signups),
    ),
    counter(
      'waitlist_rate_limit_total',
      'Attempts to sign up, by what the rate limit said.',
      byName('decision', attempts),
    ),
    counter(
      'waitlist_rate_limit_failures_total',
      'Attempts for which the shared rate limit did not answer, so that this process counted them alone.',
      one(limiter.failures),
    ),
    gauge('waitlist_connections', 'Open connections, by whether a request is under way.', [
      { labels: { state: 'active' }, value: connections.open() - connections.idle() },
      { labels: { state: 'idle' }, value: connections.idle() },
    ]),
    counter(
      'waitlist_connections_dropped_total',
      'Connections that were cut or refused, by the reason.',
      byName('reason', connections.dropped),
    ),
    histograms(
      'waitlist_store_commit_seconds',
      'How long batches of signups took to be stored, from being sent to the database until they were synced.',
      [{ labels: {}, of: commits.seconds }],
    ),
    histograms('waitlist_store_batch_size', 'Signups that were stored by one commit.', [
      { labels: {}, of: commits.sizes },
    ]),
    gauge('waitlist_store_queue_depth', 'Signups that wait for a commit.', one(commits.waiting())),
    gauge(
      'waitlist_store_takes_signups',
      'Whether a signup could be stored when that was last tried, half a minute ago at most.',
      one(store && Number(store.takesSignups)),
    ),
    gauge('waitlist_store_free_bytes', 'Free space on the disk of the embedded database.', one(reading.freeSpace)),
    counter(
      'waitlist_provider_calls_total',
      'Contacts that were handed over to the provider, by how that ended.',
      provider === null ? [] : byName('result', calls),
    ),
    gauge(
      'waitlist_breaker_open',
      'Whether a destination is out: it does not answer, or refuses our key or settings (misconfigured).',
      destinations.flatMap(({ name: destination, outage }) =>
        (['unreachable', 'misconfigured'] as const).map(reason => ({
          labels: { destination, reason },
          value: Number(outage === reason),
        })),
      ),
    ),
    ...(counts === null ? [] : counted(counts, reading)),
    gauge('waitlist_draining', 'Whether the service is about to stop.', one(Number(reading.isDraining))),
    gauge('waitlist_build_info', 'The version.', [{ labels: { version: reading.version }, value: 1 }]),
    histograms('nodejs_eventloop_delay_seconds', 'How late the process came to what it had to do.', [
      { labels: {}, of: eventLoop },
    ]),
    counter('nodejs_eventloop_time_seconds_total', 'How long the event loop worked, and waited for work.', [
      { labels: { nodejs_eventloop_state: 'active' }, value: own.active },
      { labels: { nodejs_eventloop_state: 'idle' }, value: own.idle },
    ]),
    gauge('nodejs_heap_size_total_bytes', 'Memory of the JavaScript heap.', one(own.heap)),
    gauge('nodejs_heap_size_used_bytes', 'Memory of the JavaScript heap that is used.', one(own.heapUsed)),
    gauge('nodejs_external_memory_bytes', 'Memory of objects outside the JavaScript heap.', one(own.external)),
    gauge('nodejs_version_info', 'The version of Node.js.', [{ labels: { version: process.version }, value: 1 }]),
    counter('process_cpu_seconds_total', 'Processor time of all threads.', one(own.cpu)),
    gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.', one(own.startedAt)),
    gauge('process_resident_memory_bytes', 'Resident memory.', one(own.resident)),
    gauge('process_open_fds', 'Open files and connections.', one(own.files)),
    gauge('process_max_fds', 'The most there may be of them.', one(own.mostFiles)),
  ]
}

/** What the store has counted, whichever process was at work. */
function counted({ at, contacts, redeemed, held, deliveries }: Counts, reading: Reading): readonly Metric[] {
  const names = new Set(reading.destinations.map(({ name }) => name))
  const most = names.size + EARLIER
  for (const { destination } of deliveries) if (names.size < most) names.add(destination)
  const destinations = [...names]
  const waiting = (destination: string) =>
    deliveries.find(each => each.destination === destination && each.state === 'waiting')
  return [
    gauge(
      'waitlist_contacts',
      'Contacts on the list, those of them who are invited, those whom the provider has not confirmed yet, and those that are held or did not confirm their address yet.',
      contactStates.map(state => ({ labels: { state }, value: contacts[state] })),
    ),
    gauge('waitlist_redeemed_contacts', 'Contacts who are invited and whose code was redeemed.', one(redeemed)),
    gauge(
      'waitlist_held_contacts',
      'Contacts that are held, by the reason.',
      holdReasons.map(reason => ({
        labels: { reason },
        value: held.find(each => each.reason === reason)?.count ?? 0,
      })),
    ),
    gauge(
      'waitlist_deliveries',
      'Deliveries to each destination, by their state.',
      destinations.flatMap(destination =>
        deliveryStates.map(state => ({
          labels: { destination, state },
          value: deliveries.find(each => each.destination === destination && each.state === state)?.count ?? 0,
        })),
      ),
    ),
    gauge(
      'waitlist_delivery_oldest_seconds',
      'How long ago the contact signed up whose delivery has been waiting for longest; 0: none waits.',
      destinations.map(destination => {
        const oldest = waiting(destination)?.oldest ?? at
        return { labels: { destination }, value: Math.max(0, at.getTime() - oldest.getTime()) / 1_000 }
      }),
    ),
    gauge(
      'waitlist_counts_age_seconds',
      'How old the counts of contacts and deliveries are.',
      one((reading.countsAge ?? 0) / 1_000),
    ),
  ]
}

const metric =
  (type: Metric['type']) =>
  (name: string, help: string, values: readonly Sample[]): Metric => ({ name, type, help, values })
const [counter, gauge, histogram] = [metric('counter'), metric('gauge'), metric('histogram')]

/** Null: there is none. */
const one = (value: number | null): readonly Sample[] => (value === null ? [] : [{ labels: {}, value }])

/** `overShare` becomes `over_share`. */
const byName = (label: string, numbers: Readonly<Record<string, number>>): readonly Sample[] =>
  Object.entries(numbers).map(([name, value]) => ({
    labels: { [label]: name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`) },
    value,
  }))

function histograms(name: string, help: string, each: readonly { readonly labels: Labels; readonly of: Histogram }[]) {
  const values = each.flatMap(({ labels, of }) => {
    let below = 0
    const buckets = of.counts.map((count, bucket) => {
      below += count
      const le = bucket < of.bounds.length ? String(of.bounds[bucket]) : '+Inf'
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: of.sum },
      { metricName: `${name}_count`, labels, value: countOf(of) },
    ]
  })
  return histogram(name, help, values)
}

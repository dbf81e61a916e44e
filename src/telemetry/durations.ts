import { type Histogram, histogram, observe } from './histogram.ts'

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

export function durations(): Durations {
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

import type { Limiter, RateDecision } from '../waitlist/ports/limiter.ts'

export interface MemoryLimiterOptions extends Quota {
  /** The most clients that are remembered; 100,000 take about 15 MB. */
  readonly clients?: number
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/**
 * A limiter in the memory of this process: one number for each client.
 *
 * The table is bounded: two generations of at most half of `clients` each. A client that tries is kept in the younger one.
 * When that is a window old or full, it becomes the older one, and the former older one is forgotten. After a whole window
 * every forgotten client has its full quota again anyway. Only a flood of addresses makes it forget sooner, and that is
 * safe: nobody is refused, a client regains at most one quota, and pushing out a blocked client takes half a table of
 * fresh addresses, each of which is worth a quota by itself.
 */
export function memoryLimiter({ limit, window, clients = 100_000, now = monotonic }: MemoryLimiterOptions): Limiter {
  let younger = new Map<string, number>()
  let older = new Map<string, number>()
  const { windowMs, interval, admits, decision } = gcra({ limit, window })
  let nextGeneration = now() + windowMs

  function take(client: string): RateDecision {
    const present = now()
    const before = Math.max(younger.get(client) ?? older.get(client) ?? present, present)
    const admitted = admits(before, present)
    const after = admitted ? before + interval : before
    // Even when refused, so that a client that keeps trying stays in the younger generation.
    if (after > present) remember(client, after, present)
    return decision(admitted, after - present)
  }

  function remember(client: string, fullAgainAt: number, present: number): void {
    if (present >= nextGeneration || (younger.size >= clients / 2 && !younger.has(client))) {
      older = younger
      younger = new Map()
      nextGeneration = present + windowMs
    }
    younger.set(client, fullAgainAt)
  }

  return {
    take: client => Promise.resolve(take(client)),
    async close() {
      younger.clear()
      older.clear()
    },
  }
}

const monotonic = () => performance.now()

export interface Quota {
  /** Attempts that a client may make at once, at least 1. */
  readonly limit: number
  /** Seconds in which a used-up quota is refilled, evenly. */
  readonly window: number
}

/**
 * The numbers of GCRA (ITU-T I.371), in milliseconds. A client is one number: the time at which its quota is full again.
 * An attempt moves it one interval ahead. If that would put it more than a window ahead of now, the attempt is refused and
 * the number stays.
 */
export function gcra({ limit, window }: Quota) {
  const windowMs = window * 1000
  const interval = windowMs / limit
  // Absorbs rounding, so that a client that waits exactly as long as it was told is admitted.
  const tolerance = Math.min(1e-3, interval / 100)
  return {
    windowMs,
    interval,
    tolerance,
    /** Whether one more attempt is admitted at `present` where the quota is full again at `before`. */
    admits: (before: number, present: number): boolean => before + interval - present <= windowMs + tolerance,
    /** `used`: milliseconds until the quota is full again, after this attempt. */
    decision(admitted: boolean, used: number): RateDecision {
      const remaining = Math.max(0, Math.floor((windowMs - used + tolerance) / interval))
      // Until one more attempt is left.
      const wait = used - (windowMs - (remaining + 1) * interval)
      return { admitted, remaining, seconds: Math.max(1, Math.ceil((wait - tolerance) / 1000)) }
    },
  }
}

import type { Limiter, RateDecision } from '../waitlist/ports/limiter.ts'

export interface MemoryLimiterOptions extends Quota {
  /** The most clients and networks that are remembered; 100,000 take about 15 MB. */
  readonly clients?: number
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/**
 * A limiter in the memory of this process: one number for each client, and for each network.
 *
 * The table is bounded: two generations of at most half of `clients` each. A client that tries is kept in the younger one.
 * When that is a window old or full, it becomes the older one, and the former older one is forgotten. After a whole window
 * every forgotten client has its full quota again anyway. Only a flood of addresses makes it forget sooner, and that is
 * safe: nobody is refused, a client regains at most one quota, and pushing out a blocked client takes half a table of
 * fresh addresses, each of which is worth a quota by itself. Addresses that only their network keeps out take no place.
 */
export function memoryLimiter({ limit, window, clients = 100_000, now = monotonic }: MemoryLimiterOptions): Limiter {
  let younger = new Map<string, number>()
  let older = new Map<string, number>()
  const one = gcra({ limit, window })
  const all = gcra(networkQuota({ limit, window }))
  const { windowMs } = one
  let nextGeneration = now() + windowMs

  function take(client: string, network: string | undefined): RateDecision {
    const present = now()
    const before = fullAgainAt(client, present)
    let admitted = one.admits(before, present)
    if (network === undefined) return settle(one, client, before, present, admitted)
    const networkBefore = fullAgainAt(network, present)
    admitted &&= all.admits(networkBefore, present)
    return both(settle(one, client, before, present, admitted), settle(all, network, networkBefore, present, admitted))
  }

  const fullAgainAt = (key: string, present: number) => Math.max(younger.get(key) ?? older.get(key) ?? present, present)

  function settle(
    { interval, decision }: typeof one,
    key: string,
    before: number,
    present: number,
    admitted: boolean,
  ): RateDecision {
    const after = admitted ? before + interval : before
    // Even when refused, so that a client that keeps trying stays in the younger generation.
    if (after > present) remember(key, after, present)
    return decision(admitted, after - present)
  }

  function remember(key: string, fullAgainAt: number, present: number): void {
    if (present >= nextGeneration || (younger.size >= clients / 2 && !younger.has(key))) {
      older = younger
      younger = new Map()
      nextGeneration = present + windowMs
    }
    younger.set(key, fullAgainAt)
  }

  return {
    take: (client, network) => Promise.resolve(take(client, network)),
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

/** The quota of a network. One client among many never notices it; one that has the whole network to itself does. */
export const networkQuota = ({ limit, window }: Quota): Quota => ({ limit: limit * 16, window })

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

/** What two quotas, of which an attempt needs both, allow together. */
export function both(one: RateDecision, other: RateDecision): RateDecision {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining ? one : other
  return one.seconds > other.seconds ? one : other
}

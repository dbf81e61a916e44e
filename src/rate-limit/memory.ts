import type { Limiter, RateDecision } from '../waitlist/ports/limiter.ts'

export interface MemoryLimiterOptions extends Quota {
  /** The most clients that are remembered; 100,000 take about 15 MB. */
  readonly clients?: number
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

export interface MemoryLimiter extends Limiter {
  /** Takes over how an attempt of `client`, which was taken here before, was decided for all instances. */
  learn(client: string, decided: Decided): void
}

/** `used`: microseconds until the quota is full again, after the attempt. */
export interface Decided {
  readonly admitted: boolean
  readonly used: number
}

/**
 * A limiter in the memory of this process: one number for each client, those who tried last at the end. A full table forgets
 * the oldest tenth. Only a flood of addresses fills it, and nobody is refused for that: who is forgotten regains one quota.
 */
export function memoryLimiter({
  limit,
  window,
  clients = 100_000,
  now = monotonic,
}: MemoryLimiterOptions): MemoryLimiter {
  const table = new Map<string, number>()
  const { interval, burst, decision } = gcra({ limit, window })
  const present = () => Math.floor(now() * 1_000)

  function take(client: string): RateDecision {
    const at = present()
    const before = Math.max(table.get(client) ?? 0, at)
    const admitted = before + interval - at <= burst
    const after = admitted ? before + interval : before
    table.delete(client)
    if (table.size >= clients) forget(clients / 10)
    table.set(client, after)
    return decision({ admitted, used: after - at })
  }

  /** Many at once, since a `Map` steps over all that were deleted before it finds its first entry. */
  function forget(count: number): void {
    for (const client of table.keys()) {
      if (count-- <= 0) return
      table.delete(client)
    }
  }

  return {
    take: client => Promise.resolve(take(client)),
    learn(client, { admitted, used }) {
      const before = table.get(client)
      const after = present() + used
      // Others of this client may be on their way. But one that was refused for all must not count here.
      if (before !== undefined) table.set(client, admitted ? Math.max(before, after) : after)
    },
    close: async () => table.clear(),
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
 * The numbers of GCRA (ITU-T I.371), in whole microseconds. A client is one number: the time at which its quota is full again.
 * An attempt moves it one `interval` ahead. If that would put it more than `burst` ahead of now, the attempt is refused and the
 * number stays.
 */
export function gcra({ limit, window }: Quota) {
  const interval = Math.ceil((window * 1e6) / limit)
  const burst = interval * limit
  return {
    interval,
    burst,
    decision({ admitted, used }: Decided): RateDecision {
      const remaining = Math.floor((burst - used) / interval)
      // Until one more attempt is left.
      const wait = used - burst + (remaining + 1) * interval
      return { admitted, remaining, seconds: Math.max(1, Math.ceil(wait / 1e6)) }
    },
  }
}

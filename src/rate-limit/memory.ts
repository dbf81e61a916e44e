/** What a client may do now, in numbers that fit the `RateLimit` and `Retry-After` fields. */
export interface RateDecision {
  readonly admitted: boolean
  /** Attempts left now. */
  readonly remaining: number
  /** Whole seconds, at least 1, until one more is left; after a refusal, until an attempt is admitted. */
  readonly seconds: number
}

/** Counts attempts per client. */
export interface Limiter {
  /** Counts one attempt of `client`, an opaque key. A refused attempt costs nothing. */
  take(client: string): RateDecision | Promise<RateDecision>
}

export interface Quota {
  /** Attempts that a client may make at once, at least 1. */
  readonly limit: number
  /** Seconds in which a used-up quota is refilled, evenly. */
  readonly window: number
}

/** `used`: microseconds until the quota is full again, after the attempt. */
export interface Decided {
  readonly admitted: boolean
  readonly used: number
}

/**
 * The numbers of GCRA (ITU-T I.371), in whole microseconds. A client is one number: the time at which its quota is full again.
 * An attempt moves it one `interval` ahead. If that would put it more than `burst` ahead of now, the attempt is refused.
 */
export function gcra({ limit, window }: Quota) {
  const interval = Math.ceil((window * 1e6) / limit)
  const burst = interval * limit
  function decision({ admitted, used }: Decided): RateDecision {
    const remaining = Math.floor((burst - used) / interval)
    const wait = used - burst + (remaining + 1) * interval
    return { admitted, remaining, seconds: Math.max(1, Math.ceil(wait / 1e6)) }
  }
  return { interval, burst, decision }
}

/** Clients that are remembered, which take about 15 MB. Who is forgotten regains one quota. */
export const CLIENTS = 100_000

/** A limiter in the memory of this process. */
export function memoryLimiter(quota: Quota) {
  const { interval, burst, decision } = gcra(quota)
  /** When the quota of each client is full again, in microseconds since 1970. Those who tried last are at the end. */
  const full = new Map<string, number>()

  /** Many at once: a `Map` steps over all that were deleted before it finds its first entry. */
  function forget(count: number): void {
    for (const client of full.keys()) {
      if (count-- <= 0) return
      full.delete(client)
    }
  }

  return {
    take(client: string): RateDecision {
      const now = Date.now() * 1_000
      // Nobody is locked out for longer than a window, even if the clock was set back.
      const before = Math.min(Math.max(full.get(client) ?? 0, now), now + burst)
      const admitted = before + interval <= now + burst
      const after = admitted ? before + interval : before
      full.delete(client)
      if (full.size >= CLIENTS) forget(CLIENTS / 10)
      full.set(client, after)
      return decision({ admitted, used: after - now })
    },
  }
}

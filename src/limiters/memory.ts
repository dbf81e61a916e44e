import type { Attempt, Limiter } from '../waitlist/ports.ts'

export interface Quota {
  /** Attempts that a client may make at once, at least 1. */
  readonly limit: number
  /** Seconds in which a used-up quota is refilled, one attempt after the other. */
  readonly window: number
}

export interface MemoryLimiterOptions extends Quota {
  /** Clients that are remembered at most; 100,000 take about 15 MB. */
  readonly clients?: number
  /** Milliseconds on a clock that never goes back. */
  readonly now?: () => number
}

/**
 * A limiter in the memory of this process: GCRA (ITU-T I.371), one number for each client.
 *
 * That number is the moment at which the client's quota is full again. An attempt moves it one interval further; where
 * that would be more than a window ahead, the attempt is refused and the number stays.
 *
 * The table is bounded: two generations of at most half of `clients` each. Whoever tries is kept in the younger one;
 * when that is a window old, or full, it becomes the older one and the older one is forgotten. After a whole window
 * every forgotten client had its full quota again, so nothing changes for it. Only a spray of addresses forgets sooner,
 * and that is safe: it never refuses anybody, it gives back at most one quota, and to push out a blocked client somebody
 * needs half a table of fresh addresses, each of which is worth a quota by itself.
 */
export function memoryLimiter({ limit, window, clients = 100_000, now = monotonic }: MemoryLimiterOptions): Limiter {
  let younger = new Map<string, number>()
  let older = new Map<string, number>()
  const windowMs = window * 1000
  const interval = windowMs / limit
  // Absorbs rounding, so that a client who waits exactly as long as it was told is admitted. In milliseconds.
  const tolerance = Math.min(1e-3, interval / 100)
  let nextGeneration = now() + windowMs

  function take(client: string): Attempt {
    const present = now()
    const before = Math.max(younger.get(client) ?? older.get(client) ?? present, present)
    const after = before + interval
    const admitted = after - present <= windowMs + tolerance
    const fullAgainAt = admitted ? after : before

    if (present >= nextGeneration || (younger.size >= clients / 2 && !younger.has(client))) {
      older = younger
      younger = new Map()
      nextGeneration = present + windowMs
    }
    // Also when refused: a client that keeps trying stays in the younger generation.
    younger.set(client, fullAgainAt)

    const used = fullAgainAt - present
    const remaining = Math.max(0, Math.floor((windowMs - used + tolerance) / interval))
    // Until one attempt more than now is left.
    const wait = used - (windowMs - (remaining + 1) * interval)
    return { admitted, remaining, seconds: Math.max(1, Math.ceil((wait - tolerance) / 1000)) }
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

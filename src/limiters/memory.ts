import type { Allowance, Limiter } from '../waitlist/ports.ts'
import { gcra, type Quota } from './gcra.ts'

export interface MemoryLimiterOptions extends Quota {
  /** The most clients that are remembered; 100,000 take about 15 MB. */
  readonly clients?: number
  /** Milliseconds on a clock that never goes back. */
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
  const { windowMs, interval, tolerance, allowance } = gcra({ limit, window })
  let nextGeneration = now() + windowMs

  function take(client: string): Allowance {
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
    // Even when refused, so that a client that keeps trying stays in the younger generation.
    younger.set(client, fullAgainAt)

    return allowance(admitted, fullAgainAt - present)
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

import { within } from '../waitlist/timers.ts'

export interface Cached<Value> {
  /** The newest value, and when it was made; null: there is none yet. Why the newest attempt failed; null: it did not. */
  readonly value: Value | null
  readonly at: Date | null
  readonly failed: string | null
}

export interface TtlCacheOptions {
  /** Milliseconds for which a value is not made again. */
  readonly fresh: number
  /** The largest part of all time that may be spent on making it, from 0 to 1; without it, any. */
  readonly share?: number
  /** Milliseconds that somebody who asks waits for a new value, before the last one must do. */
  readonly patience: number
  /** A monotonic clock, in milliseconds. */
  readonly clock?: () => number
}

/**
 * Remembers what is costly to make, so that nobody can have it made too often. All who ask meanwhile share one attempt. A
 * failure is remembered like a value.
 */
export function ttlCache<Value>(
  make: () => Value | Promise<Value>,
  { fresh, share = 1, patience, clock = () => performance.now() }: TtlCacheOptions,
): () => Promise<Cached<Value>> {
  let latest: Cached<Value> = { value: null, at: null, failed: null }
  let making: Promise<void> | null = null
  let staleAt = Number.NEGATIVE_INFINITY

  async function renew(): Promise<void> {
    const began = clock()
    try {
      const value = await make()
      latest = { value, at: new Date(), failed: null }
    } catch (error) {
      latest = { ...latest, failed: (error as Error).message }
    }
    const ended = clock()
    staleAt = ended + Math.max(fresh, (ended - began) * (1 / share - 1))
  }

  return async () => {
    if (clock() < staleAt) return latest
    making ??= renew().finally(() => {
      making = null
    })
    await within(making, patience, undefined)
    return latest
  }
}

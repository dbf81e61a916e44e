/** What a limiter allows a client now, in numbers that fit the `RateLimit` and `Retry-After` fields. */
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
  take(client: string): Promise<RateDecision>
  close(): Promise<void>
}

/** Turns that all instances share, so that together they keep a vendor's documented rate. */
export interface SharedPace {
  /**
   * Takes a turn among all callers with the same `key`: at most `calls` begin within any `per` milliseconds. Resolves
   * with the milliseconds until the turn, or with null if they would exceed `longest`; then no turn is taken. Never
   * rejects: while turns cannot be shared, the wait is 0.
   */
  take(key: string, calls: number, per: number, longest: number): Promise<number | null>
  close(): Promise<void>
}

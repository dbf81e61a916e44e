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

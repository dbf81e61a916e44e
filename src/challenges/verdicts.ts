import type { Verdict } from '../waitlist/ports/challenge.ts'

export interface VerdictsOptions {
  readonly most: number
  /** Milliseconds for which a solved one is remembered. */
  readonly lifetime: number
  /** A monotonic clock, in milliseconds. */
  readonly clock?: () => number
}

/** Verdicts by nonce: those that are under way, and those that were `solved`. The oldest make room for new ones. */
export interface Verdicts {
  /** The verdict that is remembered, or a new one. */
  of(nonce: string, make: () => Promise<Verdict>): Promise<Verdict>
}

export function verdicts({ most, lifetime, clock = () => performance.now() }: VerdictsOptions): Verdicts {
  const kept = new Map<string, { readonly verdict: Promise<Verdict>; readonly until: number }>()

  function sweep(now: number): void {
    for (const [nonce, { until }] of kept) {
      if (until > now && kept.size < most) break
      kept.delete(nonce)
    }
  }

  return {
    of(nonce, make) {
      const now = clock()
      const known = kept.get(nonce)
      if (known !== undefined && known.until > now) return known.verdict
      sweep(now)
      const verdict = make()
      const own = { verdict, until: now + lifetime }
      kept.set(nonce, own)
      const forget = () => {
        if (kept.get(nonce) === own) kept.delete(nonce)
      }
      verdict.then(({ is }) => {
        if (is !== 'solved') forget()
      }, forget)
      return verdict
    },
  }
}

import { type Admission, StoreUnavailable } from '../waitlist/ports.ts'
import type { Signup } from '../waitlist/signup.ts'

/** Milliseconds for which a stored signup shows that others can be stored too. */
const STORED = 1_000
/** Milliseconds for which a refused signup counts for more than a trial, which is small and may find room where it did not. */
const REFUSED = 2_000

export interface Checked {
  admit(signups: readonly Signup[]): Promise<readonly Admission[]>
  /** Resolves when a signup could be committed now. */
  check(): Promise<void>
}

/**
 * Whether a store could commit a signup now. What became of the last ones tells; when there were none, `trial` commits
 * one that leaves nothing behind. So a busy store pays nothing for its health checks. `clock`: milliseconds that only grow.
 */
export function checked(
  admit: Checked['admit'],
  trial: () => Promise<void>,
  clock: () => number = () => performance.now(),
): Checked {
  let storedAt = Number.NEGATIVE_INFINITY
  let refusedAt = Number.NEGATIVE_INFINITY
  let trying: Promise<void> | undefined

  return {
    async admit(signups) {
      try {
        const admissions = await admit(signups)
        // Nothing is written for a known address.
        if (admissions.some(({ is }) => is === 'listed now' || is === 'pending now')) storedAt = clock()
        return admissions
      } catch (error) {
        if (error instanceof StoreUnavailable) refusedAt = clock()
        throw error
      }
    },
    async check() {
      const now = clock()
      if (now - storedAt < STORED) return
      if (now - refusedAt < REFUSED) throw new StoreUnavailable('signups were refused a moment ago')
      // While the last trial is unanswered, there is no other.
      trying ??= trial().finally(() => {
        trying = undefined
      })
      await trying
    },
  }
}

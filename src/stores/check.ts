import { type Admission, StoreUnavailable } from '../waitlist/ports/signups.ts'
import type { Signup } from '../waitlist/rules/signup.ts'

/** Milliseconds for which a stored signup shows that others can be stored too. */
const STORED = 1_000
/** Milliseconds for which a refused signup counts for more than a trial, which is small and may find room where it did not. */
const REFUSED = 2_000
const NEVER = Number.NEGATIVE_INFINITY

type Admit = (signups: readonly Signup[]) => Promise<readonly Admission[]>

/** Whether something was written for a signup. */
const stores = (admission: Admission): boolean =>
  ['listed now', 'pending now', 'held now'].includes(admission.is) || ('asked' in admission && admission.asked)

/**
 * Whether a store could commit a signup now. What became of the last one tells; when there was none lately, `trial` commits
 * one that leaves nothing behind. So a busy store pays nothing for its health checks.
 */
export function checked(
  admit: Admit,
  trial: () => Promise<void>,
  /** Monotonic, in milliseconds. */
  clock = () => performance.now(),
) {
  /** Only the last signup counts, so there is one of them at most. */
  let storedAt = NEVER
  let refused: { readonly at: number; readonly reason: StoreUnavailable } | null = null
  let trying: Promise<void> | undefined

  return {
    async admit(signups: readonly Signup[]): Promise<readonly Admission[]> {
      try {
        const admissions = await admit(signups)
        // Nothing is written for a known address.
        if (admissions.some(stores)) {
          storedAt = clock()
          refused = null
        }
        return admissions
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          refused = { at: clock(), reason: error }
          storedAt = NEVER
        }
        throw error
      }
    },
    /** Resolves when a signup could be committed now. */
    async check(): Promise<void> {
      const now = clock()
      if (now - storedAt < STORED) return
      if (refused !== null && now - refused.at < REFUSED) throw refused.reason
      // While the last trial is unanswered, there is no other.
      trying ??= trial().finally(() => {
        trying = undefined
      })
      await trying
    },
  }
}

import type { Registered } from './conclude.ts'
import type { Store } from './ports.ts'
import type { Register } from './register.ts'
import type { Signup } from './signup.ts'

/** What is true for a visitor once the signup is recorded. `new`: its event is stored, and will be delivered. */
export type Joined = Registered

export interface JoinParts {
  readonly store: Store
  /** Null: there is no provider, the store is the list. */
  readonly register: Register | null
  /** Milliseconds that a visitor waits for the provider. */
  readonly timeout: number
  /** Aborted when nobody can be kept waiting any more: what is under way at the provider is then completed later. */
  readonly leaving?: AbortSignal
  /** Called when an event was born. */
  readonly announce: () => void
}

/**
 * A visitor joins the waitlist.
 *
 * The store's id of a contact that was listed before is not told: whoever types somebody else's address must not learn
 * an identifier, nor (a UUIDv7 carries it) the moment that person joined.
 */
export async function join(
  signup: Signup,
  { store, register, timeout, leaving, announce }: JoinParts,
): Promise<Joined> {
  let deadline: AbortSignal | undefined
  for (;;) {
    const admission = await store.admit(signup)
    if (admission.is === 'listed now') {
      announce()
      return { is: 'new', contactId: admission.contactId }
    }
    if (admission.is === 'already listed') return { is: 'known' }

    if (register === null) throw new Error('without a provider nothing is pending')
    deadline ??= earliest(AbortSignal.timeout(timeout), leaving)
    const joined =
      admission.is === 'pending now'
        ? await register.attempt(admission.registration, deadline)
        : await register.again(admission.contactId, deadline)
    // The provider refused the address while we waited for it: this signup is the first one again.
    if (joined !== 'gone') return joined
  }
}

const earliest = (timeout: AbortSignal, leaving: AbortSignal | undefined): AbortSignal =>
  leaving === undefined ? timeout : AbortSignal.any([timeout, leaving])

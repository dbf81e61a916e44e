import type { Store } from './ports.ts'
import type { Signup } from './signup.ts'

/** What is true for a visitor once the signup is recorded. */
export type Joined =
  | { readonly is: 'new'; readonly contactId?: string; readonly automationTriggered: boolean }
  | { readonly is: 'known' }

/**
 * A visitor joins the waitlist.
 *
 * The id of a contact that was listed before is not told: whoever types somebody else's address must not learn an
 * identifier, nor (a UUIDv7 carries it) the moment that person joined.
 */
export async function join(signup: Signup, store: Store): Promise<Joined> {
  const admission = await store.admit(signup)
  switch (admission.is) {
    case 'listed now':
      return { is: 'new', contactId: admission.contactId, automationTriggered: true }
    case 'already listed':
      return { is: 'known' }
  }
}

import type { Conclusion, Creation, Registration } from './ports.ts'
import { untilNextRegistration, untilNextTurn } from './retry.ts'

/** What came of asking the provider. */
export type Registered =
  | { readonly is: 'new'; readonly contactId?: string }
  | { readonly is: 'known'; readonly contactId?: string }
  /** The signup is stored, and is completed in the background. */
  | { readonly is: 'kept'; readonly because: 'unreachable' | 'misconfigured' }
  | { readonly is: 'refused'; readonly reason: string }

/**
 * The state machine of a pending contact. An attempt begins by storing "in doubt" with the lease, so that a crash at any
 * moment leaves the truth behind: what began and was not concluded may have taken effect.
 *
 * | the provider says        | in doubt before | the contact           | event | in doubt after | the visitor hears         |
 * |--------------------------|-----------------|-----------------------|-------|----------------|---------------------------|
 * | created                  | either          | is listed             | yes   | –              | new                       |
 * | existing                 | no              | is listed             | no    | –              | known                     |
 * | existing, ours           | yes             | is listed             | yes   | –              | new                       |
 * | existing, not ours       | yes             | is listed             | no    | –              | known                     |
 * | existing, cannot tell    | yes             | is listed             | yes   | –              | new                       |
 * | refused                  | either          | is removed            | no    | –              | why the address is refused |
 * | unreached, misconfigured | no / yes        | stays, tried again    | no    | no / yes       | kept                      |
 * | unclear                  | either          | stays, tried again    | no    | yes            | kept                      |
 * | nothing: we died         | either          | stays, when the lease ends | no | yes          | nothing                   |
 */
export function conclude(creation: Creation, { doubt, attempts }: Registration, random: number): Conclusion {
  switch (creation.is) {
    case 'refused':
      return { is: 'refused' }
    case 'created':
    case 'existing': {
      const { is, providerId } = creation
      const added = is === 'created' || (doubt && creation.ours !== false)
      return { is: added ? 'created' : 'existing', ...(providerId === undefined ? {} : { providerId }) }
    }
    case 'unclear':
    case 'unreached':
    case 'misconfigured': {
      const { is, why } = creation
      const retryAfter = 'retryAfter' in creation ? creation.retryAfter : undefined
      if (isUncalled(creation)) {
        return { is: 'pending', wait: untilNextTurn('registration', random, retryAfter), doubt, why, uncalled: true }
      }
      const wait = untilNextRegistration(attempts + 1, random, retryAfter)
      return { is: 'pending', wait, doubt: doubt || is === 'unclear', why }
    }
  }
}

export const isUncalled = (creation: Creation): boolean => creation.is === 'unreached' && creation.uncalled === true

/** What the visitor hears: the creation, seen with what was concluded of it. */
export function registeredOf(creation: Creation, conclusion: Conclusion): Registered {
  switch (conclusion.is) {
    case 'created':
    case 'existing': {
      const { is, providerId } = conclusion
      return { is: is === 'created' ? 'new' : 'known', ...(providerId === undefined ? {} : { contactId: providerId }) }
    }
    case 'pending':
      return { is: 'kept', because: creation.is === 'misconfigured' ? 'misconfigured' : 'unreachable' }
    case 'refused':
      return { is: 'refused', reason: creation.is === 'refused' ? creation.reason : '' }
  }
}

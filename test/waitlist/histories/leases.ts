import type { Witness } from './line.ts'

/** Who holds what, as the store's answers said it: only the last to be given a lease may end it, and once. */
export interface Leases {
  given(what: string, token: string): void
  ended(what: string, token: string): void
}

export function watchLeases({ fault }: Witness): Leases {
  const held = new Map<string, string>()
  return {
    given: (what, token) => void held.set(what, token),
    ended(what, token) {
      if (held.get(what) !== token) fault(`the lease of ${what} was lost, and ended it all the same`)
      held.delete(what)
    },
  }
}

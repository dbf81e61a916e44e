import { StoreUnavailable } from '../store/database.ts'
import type { Signup } from './contact.ts'
import { type Joined, type JoinParts, join } from './join.ts'

/**
 * Lets visitors join, and keeps track of them, so that the store is not closed while somebody waits for the provider. Where
 * membership is not disclosed, visitors do not wait, and their attempts are in flight instead.
 */
export function inFlight(rest: Omit<JoinParts, 'inBackground'>, disclosesMembership: boolean) {
  const visits = new Map<Promise<unknown>, (reason: StoreUnavailable) => void>()
  const keep = (visit: Promise<unknown>, refuse: (reason: StoreUnavailable) => void) => {
    visits.set(visit, refuse)
    visit.catch(() => {}).finally(() => visits.delete(visit))
  }
  // Nobody waits for these. What the store refuses is attempted again when the lease has ended.
  const inBackground = disclosesMembership ? null : (attempt: Promise<unknown>) => keep(attempt, () => {})
  const parts: JoinParts = { ...rest, inBackground }
  return {
    join(signup: Signup): Promise<Joined> {
      const visit = join(signup, parts)
      // Without a provider there is no need: the server waits for the answers anyway.
      if (parts.handOver === null) return visit
      return new Promise((resolve, reject) => {
        keep(visit, reject)
        visit.then(resolve, reject)
      })
    },
    /** Answers everybody who waits. */
    refuse(): void {
      for (const refuse of visits.values()) refuse(new StoreUnavailable('the outcome was not stored before the stop'))
    },
    over: () => Promise.allSettled(visits.keys()),
  }
}

import type { Delivery, Registration, Store } from '../waitlist/ports.ts'

interface Leased {
  readonly registrations?: readonly Registration[]
  readonly deliveries?: readonly Delivery[]
}

/** Gives back what was leased too late for whoever asked: nobody was called, so nothing is in doubt. */
export const givingBack =
  ({ conclude, settle }: Pick<Store, 'conclude' | 'settle'>) =>
  ({ registrations = [], deliveries = [] }: Leased): void => {
    const again = { wait: 0, why: 'taken too late to begin', uncalled: true } as const
    const given = [
      ...registrations.map(each => conclude(each, { is: 'pending', doubt: each.doubt, ...again })),
      ...deliveries.map(each => settle(each, { is: 'waiting', doubt: each.doubt, ...again })),
    ]
    // Where that fails too, the lease ends by itself.
    for (const each of given) each.catch(() => {})
  }

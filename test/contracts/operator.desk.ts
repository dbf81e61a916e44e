import type { TestContext } from 'node:test'
import type { Operator } from '../../src/stores/operator/operator.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { opened, type Place, type PlaceOptions, type RunSql } from './store.place.ts'

/** A place, with what an operator sees of it. */
export interface Desk {
  readonly place: Place
  readonly operator: Operator
  readonly sql: RunSql
  /** A time in milliseconds since 1970, in the engine's SQL. */
  time(milliseconds: number): string
}

export type MakeDesk = (t: TestContext) => Promise<Desk>

/** A desk at which a service runs. */
export interface OpenDesk extends Desk {
  readonly store: Store
}

/** Of a service with a provider that tells two destinations, unless something else is said. */
export async function openDesk(make: MakeDesk, t: TestContext, options: PlaceOptions = {}): Promise<OpenDesk> {
  const desk = await make(t)
  const store = await opened(desk.place, t, { provider: 'provider', destinations: ['webhook', 'crm'], ...options })
  return { ...desk, store }
}

/** What somebody who does not leave asks with. */
export const course = { progress() {}, signal: new AbortController().signal }

import type { ContactState, DeliveryState } from '../../waitlist/rules/contact.ts'

/** Erases people. */
export interface Erasure {
  /** What is stored about the contact with this address; undefined: it is not on the list. */
  traces(email: string): Promise<Traces | undefined>
  /**
   * Deletes the contact with its deliveries in one step, and keeps a keyed hash of the address, so that older copies do not
   * come back. An attempt that is under way may still arrive; its outcome is stored nowhere.
   */
  erase(email: string): Promise<Traces | undefined>
}

/** What is stored about a contact, without the contact itself. Each destination is in one of the three lists at most. */
export interface Traces {
  readonly state: ContactState
  readonly createdAt: Date
  /** How many deliveries are in each state. */
  readonly deliveries: Readonly<Record<DeliveryState, number>>
  readonly told: readonly string[]
  /** Attempts were made there, and none is known to have succeeded. */
  readonly tried: readonly string[]
  /** An attempt is leased now. */
  readonly underWay: readonly string[]
}

/** The columns of a delivery that the traces are made of, without whether it is leased. */
export const TRACE_COLUMNS = 'destination, state, attempts > 0 or doubt as tried'

/** Numbers or booleans, depending on the engine. */
export interface TraceRow {
  readonly destination: string
  readonly state: DeliveryState
  readonly tried: number | boolean
  readonly leased: number | boolean
}

export function tracesOf(contact: Pick<Traces, 'state' | 'createdAt'>, rows: readonly TraceRow[]): Traces {
  const count = (state: DeliveryState) => rows.filter(row => row.state === state).length
  const where = (holds: (row: TraceRow) => boolean) => rows.filter(holds).map(({ destination }) => destination)
  return {
    ...contact,
    deliveries: { waiting: count('waiting'), delivered: count('delivered'), abandoned: count('abandoned') },
    told: where(({ state }) => state === 'delivered'),
    tried: where(({ state, tried, leased }) => state !== 'delivered' && !leased && Boolean(tried)),
    underWay: where(({ state, leased }) => state === 'waiting' && Boolean(leased)),
  }
}

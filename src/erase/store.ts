import type { ContactState, DeliveryState } from '../signup/contact.ts'
import { emailKey } from '../signup/contact.ts'
import type { Tx } from '../store/database.ts'
import { rememberErasure } from '../store/erasures.ts'

/** What is stored about a contact, without the contact itself. A destination may be in a list for each of its events. */
export interface Traces {
  readonly state: ContactState
  readonly createdAt: Date
  /** How many deliveries are in each state. */
  readonly deliveries: Readonly<Record<DeliveryState, number>>
  readonly delivered: readonly string[]
  /** Attempts were made there, and none is known to have succeeded. */
  readonly tried: readonly string[]
  /** An attempt is leased now. */
  readonly inFlight: readonly string[]
}

interface TraceRow {
  readonly destination: string
  readonly state: DeliveryState
  readonly tried: number
  readonly leased: number
}

/** What is stored about the contact with this address; undefined: it is not on the list. */
export const tracesOf = async (tx: Tx, email: string): Promise<Traces | undefined> => (await find(tx, email))?.traces

async function find(tx: Tx, email: string) {
  const [contact] = await tx.all<{ number: number; state: ContactState; created_at: number }>(
    `select number, state, created_at from contact where email_key = $1`,
    [emailKey(email)],
  )
  if (contact === undefined) return undefined
  const { number, state, created_at } = contact
  const rows = await tx.all<TraceRow>(
    'select destination, state, case when attempts > 0 or doubt = 1 or token is not null then 1 else 0 end as tried,' +
      ' case when token is not null and due_at > $2 then 1 else 0 end as leased' +
      ' from delivery where contact = $1 order by number',
    [number, tx.now],
  )
  const count = (state: DeliveryState) => rows.filter(row => row.state === state).length
  const where = (holds: (row: TraceRow) => boolean) => [
    ...new Set(rows.filter(holds).map(({ destination }) => destination)),
  ]
  const traces: Traces = {
    state,
    createdAt: new Date(created_at),
    deliveries: { waiting: count('waiting'), delivered: count('delivered'), abandoned: count('abandoned') },
    delivered: where(({ state }) => state === 'delivered'),
    tried: where(({ state, tried, leased }) => state !== 'delivered' && leased === 0 && tried === 1),
    inFlight: where(({ state, leased }) => state === 'waiting' && leased === 1),
  }
  return { number, createdAt: created_at, traces }
}

/**
 * Deletes the contact with its deliveries, and keeps a keyed hash of the address, so that older copies do not come back. An
 * attempt that is in flight may still arrive; its outcome is stored nowhere. Undefined: it is not on the list.
 */
export async function erase(tx: Tx, email: string): Promise<Traces | undefined> {
  const found = await find(tx, email)
  if (found === undefined) return undefined
  await eraseContact(tx, found.number, email, found.createdAt)
  return found.traces
}

/** The same for a contact that is known. */
export async function eraseContact(tx: Tx, number: number, email: string, createdAt: number): Promise<void> {
  // As settlements do: first what is settled, then the contact.
  await tx.all(`select number from delivery where contact = $1 order by number ${tx.dialect.forUpdate}`, [number])
  await rememberErasure(tx, email, createdAt)
  await tx.run('delete from contact where number = $1', [number])
}

import type { ContactState } from '../signup/contact.ts'
import { emailKey } from '../signup/contact.ts'
import type { Tx } from '../store/database.ts'
import { rememberErasure } from '../store/erasures.ts'

/** What is stored about a contact, without the contact itself. A destination may be in a list for each of its events. */
export interface Traces {
  readonly number: number
  readonly state: ContactState
  readonly createdAt: Date
  readonly delivered: readonly string[]
  /** Attempts were made there, and none is known to have succeeded. */
  readonly tried: readonly string[]
  /** An attempt is leased now. */
  readonly inFlight: readonly string[]
}

/** What is stored about the contact with this address; undefined: it is not on the list. */
export async function tracesOf(tx: Tx, email: string): Promise<Traces | undefined> {
  const [contact] = await tx.all<{ number: number; state: ContactState; created_at: number }>(
    'select number, state, created_at from contact where email_key = $1',
    [emailKey(email)],
  )
  if (contact === undefined) return undefined
  const { number, state, created_at } = contact
  const rows = await tx.all<{ destination: string; trace: 'delivered' | 'inFlight' | 'tried' | null }>(
    "select destination, case when state = 'delivered' then 'delivered'" +
      " when state = 'waiting' and token is not null and due_at > $2 then 'inFlight'" +
      " when attempts > 0 or doubt = 1 or token is not null then 'tried' end as trace" +
      ' from delivery where contact = $1 order by number',
    [number, tx.now],
  )
  const destinations = (trace: string) => [
    ...new Set(rows.filter(row => row.trace === trace).map(({ destination }) => destination)),
  ]
  return {
    number,
    state,
    createdAt: new Date(created_at),
    delivered: destinations('delivered'),
    tried: destinations('tried'),
    inFlight: destinations('inFlight'),
  }
}

/**
 * Deletes the contact with its deliveries, and keeps a keyed hash of the address, so that older copies do not come back. An
 * attempt that is in flight may still arrive; its outcome is stored nowhere. Undefined: it is not on the list.
 */
export async function erase(tx: Tx, email: string): Promise<Traces | undefined> {
  const traces = await tracesOf(tx, email)
  if (traces !== undefined) await eraseContact(tx, traces.number, email, traces.createdAt.getTime())
  return traces
}

/** The same for a contact that is known. */
export async function eraseContact(tx: Tx, number: number, email: string, createdAt: number): Promise<void> {
  // As settlements do: first what is settled, then the contact.
  await tx.all(`select number from delivery where contact = $1 order by number ${tx.dialect.forUpdate}`, [number])
  await rememberErasure(tx, email, createdAt)
  await tx.run('delete from contact where number = $1', [number])
}

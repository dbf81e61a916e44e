import type { ContactState, DeliveryKind } from '../signup/contact.ts'
import type { Tx } from './database.ts'

/** What becomes of new signups. */
export interface SignupTargets {
  readonly eventName: string
  readonly provider: string | null
  /** Those that are notified of the event. */
  readonly destinations: readonly string[]
  /** The destination that asks for a confirmation before all else; null: nobody has to confirm. */
  readonly confirmation: string | null
}

interface Beginning {
  readonly state: ContactState
  /** Null: it has not joined yet. */
  readonly eventName: string | null
  readonly kind: DeliveryKind
  readonly destinations: readonly string[]
}

/** Where a contact starts that no rule holds. */
export function beginningOf({ eventName, provider, destinations, confirmation }: SignupTargets): Beginning {
  if (confirmation !== null)
    return { state: 'unconfirmed', eventName: null, kind: 'confirmation', destinations: [confirmation] }
  if (provider !== null) return { state: 'pending', eventName: null, kind: 'handover', destinations: [provider] }
  return { state: 'listed', eventName, kind: 'joined', destinations }
}

/**
 * Moves contacts on that were kept back, to where a new signup starts now. Those that have left the state stay as they are.
 * Returns the numbers of those that were moved.
 */
export async function activate(
  tx: Tx,
  from: 'held' | 'unconfirmed' | 'pending',
  numbers: readonly number[],
  targets: SignupTargets,
): Promise<readonly number[]> {
  const wasUnconfirmed = from === 'unconfirmed'
  const { state, eventName, kind, destinations } = beginningOf(
    wasUnconfirmed ? { ...targets, confirmation: null } : targets,
  )
  const isUnconfirmed = state === 'unconfirmed'
  const rows = await tx.all<{ number: number }>(
    'update contact set state = $2, reason = null, event_name = $3, event_at = $4, confirmation_sent_at = $5,' +
      ' confirmations_sent = $6, confirmed_at = coalesce(confirmed_at, $7)' +
      ` where ${tx.dialect.among('number', '$1')} and state = '${from}' returning number`,
    [
      numbers,
      state,
      eventName,
      eventName === null ? null : tx.now,
      isUnconfirmed ? tx.now : null,
      isUnconfirmed ? 1 : null,
      wasUnconfirmed && targets.confirmation !== null ? tx.now : null,
    ],
  )
  const activated = rows.map(({ number }) => number).sort((a, b) => a - b)
  if (activated.length === 0) return activated
  if (from !== 'held') {
    const earlier: DeliveryKind = wasUnconfirmed ? 'confirmation' : 'handover'
    await tx.run(`delete from delivery where ${tx.dialect.among('contact', '$1')} and kind = '${earlier}'`, [activated])
  }
  await addDeliveries(tx, activated, kind, destinations)
  return activated
}

/** Adds deliveries of contacts, due now, in the order of the numbers. One that is there already becomes new again. */
export async function addDeliveries(
  tx: Tx,
  contacts: readonly number[],
  kind: DeliveryKind,
  destinations: readonly string[],
): Promise<void> {
  await tx.insert(
    'delivery',
    contacts.flatMap(contact => destinations.map(destination => deliveryRow(tx, contact, destination, kind))),
    "on conflict (contact, destination, kind) do update set state = 'waiting', attempts = 0, doubt = 0," +
      ' due_at = excluded.due_at, token = null, why = null, settled_at = null',
  )
}

export const deliveryRow = ({ now }: Tx, contact: number, destination: string, kind: DeliveryKind) => ({
  contact,
  destination,
  kind,
  state: 'waiting',
  attempts: 0,
  doubt: 0,
  due_at: now,
})

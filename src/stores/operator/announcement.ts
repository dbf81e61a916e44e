import type { ContactState, EventKind } from '../../waitlist/rules/contact.ts'
import { IN_PLACE } from '../rows.ts'
import type { Sql } from '../sql.ts'

/** Who is told of new signups, as both stores know it. */
export interface Announcement {
  readonly eventName: string
  readonly provider: string | null
  readonly destinations: readonly string[]
}

/** How a contact is stored at first. Null: nobody is told of it. */
export function initialState({ state }: { readonly state: ContactState }, announcement: Announcement | null) {
  if (announcement === null || state === 'held' || state === 'invited')
    return { state, eventName: null, destinations: [] }
  const { provider, eventName, destinations } = announcement
  return provider === null
    ? { state: 'listed', eventName, destinations }
    : { state: 'pending', eventName: null, destinations: [provider] }
}

/**
 * Adds the deliveries of those with the numbers, due in this order. They are rows of their own, so nothing is lost if one is
 * there.
 */
export async function addDeliveries(
  sql: Sql,
  contacts: readonly { readonly number: number }[],
  event: EventKind,
  destinations: readonly string[],
): Promise<void> {
  const { now, inOrder, among, elements } = sql.dialect
  await sql.all(
    'insert into delivery (contact, destination, event, due_at)' +
      ` select number, destination.value, '${event}', ${inOrder(now, 'row_number() over (order by number)')}` +
      ` from contact cross join (${elements('$2', 'text')}) as destination` +
      ` where ${among('number', elements('$1', 'whole'))} order by number ${IN_PLACE}`,
    [JSON.stringify(contacts.map(({ number }) => number)), JSON.stringify(destinations)],
  )
}

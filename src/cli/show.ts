import { operatorOf, type Person } from '../app/operator.ts'
import type { Config } from '../config/config.ts'
import { type Contact, type DeliveryRecord, eventId } from '../waitlist/rules/contact.ts'
import { fail } from './complain.ts'
import { print, toJson } from './print.ts'
import { type Columns, facts, moment, table } from './table.ts'

/** Writes one contact with its history and deliveries to standard output. */
export async function showContact(config: Config, address: string, { json }: { readonly json?: true }): Promise<void> {
  const { contact, deliveries, erasedAt } = await (await operatorOf(config)).person(address)
  if (contact === undefined) return fail(missing(address, erasedAt))
  if (json) return print([toJson({ ...whole(contact), deliveries })])
  const { id, name, email, state, heldFor, createdAt, providerId, event } = contact
  return print([
    ...facts({
      id,
      name,
      address: email,
      state: states[state],
      ...(heldFor && { 'held for': heldFor }),
      ...(erasedAt && { erased: `${moment(erasedAt)}; they signed up again` }),
      'signed up': moment(createdAt),
      joined: event ? `${moment(event.at)}, ${event.name}, ${eventId(contact)}` : withoutEvent[state],
      source: sourceIn(contact),
      ...(providerId !== undefined && { 'provider id': providerId }),
    }),
    '\n',
    ...(deliveries.length === 0 ? ['There are no deliveries.\n'] : table(columns, deliveries)),
  ])
}

const states = {
  pending: 'pending: the provider has not confirmed it yet',
  held: 'held: nobody is told of it until it is released',
  listed: 'listed',
}
const withoutEvent = {
  pending: 'not yet',
  held: 'not yet',
  listed: 'without an event: imported, or known to the provider before',
}

const sourceIn = ({ source = {} }: Contact): string =>
  Object.entries(source)
    .map(each => each.join('='))
    .join(', ') || 'not known'

const columns: Columns<DeliveryRecord> = {
  delivery: ({ number }) => String(number),
  state: ({ state }) => state,
  destination: ({ destination }) => destination,
  attempts: ({ attempts }) => String(attempts),
  'due or settled': ({ due, settledAt }) => moment(settledAt ?? due),
  why: ({ why }) => why ?? '',
}

/** Everything about a contact, as JSON has it. */
export function whole(contact: Contact) {
  const { id, name, email, state, heldFor, createdAt, source, providerId, event } = contact
  return {
    id,
    name,
    email,
    state,
    heldFor,
    createdAt,
    source,
    providerId,
    event: event && { id: eventId(contact), ...event },
  }
}

export const missing = (address: string, erasedAt: Person['erasedAt']): string =>
  `There is no contact with the address ${address}.${erasedAt ? ` It was erased at ${moment(erasedAt)}.` : ''}`

import { operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { type Contact, type DeliveryRecord, eventId, type Invitation, sourceLabel } from '../signup/contact.ts'
import type { ContactFilter, Person } from '../store/contacts.ts'
import { fail, misused } from './console.ts'
import { exported } from './formats.ts'
import { type Columns, counted, facts, MOST, moment, moreThan, number, print, table, toJson } from './print.ts'

export interface ContactsOptions extends ContactFilter {
  readonly limit: number
  readonly json?: true
}

/** Writes the contacts that were added last to standard output, as a table or as JSON with one object a line, as an export has it. */
export async function listContacts(config: Config, { limit, json, ...filter }: ContactsOptions): Promise<void> {
  if (limit > MOST) return misused(`--limit is at most ${number(MOST)}; waitlist export writes any number.`)
  // One more than requested, to know whether there are more.
  const found = await operatorOf(config).addedLast(filter, limit + 1)
  const shown = found.slice(0, limit)
  if (shown.length === 0) return fail('There are no such contacts.')
  if (json) return print(shown.map(contact => toJson(exported(contact))))
  const more = found.length > limit ? [moreThan(limit)] : []
  return print([...table(columns, shown), ...more])
}

const columns: Columns<Contact> = {
  'signed up': ({ createdAt }) => moment(createdAt),
  state: ({ state }) => state,
  name: ({ name }) => name,
  address: ({ email }) => email,
  source: ({ source }) => sourceLabel(source) ?? '',
}

/** Writes one contact with its history and deliveries to standard output. */
export async function showContact(
  config: Config,
  given: string | undefined,
  { code, json }: { readonly code?: string; readonly json?: true },
): Promise<void> {
  if ((given === undefined) === (code === undefined)) return misused('Say who: an address, or --code.')
  const operator = operatorOf(config)
  const address = given ?? (await operator.addressOf(code!))
  if (address === undefined) return fail('This code is nobody’s.')
  const { contact, deliveries, erasedAt } = await operator.person(address)
  if (contact === undefined) return fail(missing(address, erasedAt))
  if (json) return print([toJson({ ...whole(contact), deliveries })])
  const { id, name, email, state, reason, createdAt, confirmation, confirmedAt, providerId, event, invitation } =
    contact
  return print([
    ...facts({
      id,
      name,
      address: email,
      state: states[state],
      ...(reason && { reason }),
      ...(erasedAt && { erased: `${moment(erasedAt)}; they signed up again` }),
      'signed up': moment(createdAt),
      ...(confirmation && {
        asked: `${counted(confirmation.times, 'time', 'times')} to confirm, last at ${moment(confirmation.at)}`,
      }),
      ...(confirmedAt && { confirmed: moment(confirmedAt) }),
      joined: event ? `${moment(event.at)}, ${event.name}, ${eventId(contact, 'joined')}` : withoutEvent[state],
      ...(invitation && { invited: invitedIn(contact, invitation), code: invitation.code }),
      ...(invitation && { redeemed: invitation.redeemedAt ? moment(invitation.redeemedAt) : 'not yet' }),
      source: sourceIn(contact),
      ...(providerId !== undefined && { 'provider id': providerId }),
    }),
    '\n',
    ...(deliveries.length === 0 ? ['There are no deliveries.\n'] : table(deliveryColumns, deliveries)),
  ])
}

const states = {
  unconfirmed: 'unconfirmed: it goes no further until its address is confirmed',
  pending: 'pending: the provider has not confirmed it yet',
  held: 'held: nobody is told of it until it is released',
  listed: 'listed',
  invited: 'invited',
}
const WITHOUT_EVENT = 'without an event: imported, or known to the provider before'
const withoutEvent = {
  unconfirmed: 'not yet',
  pending: 'not yet',
  held: 'not yet',
  listed: WITHOUT_EVENT,
  invited: WITHOUT_EVENT,
}

const invitedIn = (contact: Contact, { at, name }: Invitation): string =>
  `${moment(at)}, ${name === undefined ? 'without an event: imported' : `${name}, ${eventId(contact, 'invited')}`}`

const sourceIn = ({ source = {} }: Contact): string =>
  Object.entries(source)
    .map(each => each.join('='))
    .join(', ') || 'not known'

const deliveryColumns: Columns<DeliveryRecord> = {
  delivery: ({ number }) => String(number),
  state: ({ state }) => state,
  destination: ({ destination }) => destination,
  attempts: ({ attempts }) => String(attempts),
  'due or settled': ({ due, settledAt }) => moment(settledAt ?? due),
  why: ({ why }) => why ?? '',
}

/** Everything about a contact, as JSON has it. */
const whole = (contact: Contact) => ({
  ...exported(contact),
  providerId: contact.providerId,
  confirmation: contact.confirmation,
  event: contact.event && { id: eventId(contact, 'joined'), ...contact.event },
  invitation: contact.invitation?.name && {
    id: eventId(contact, 'invited'),
    name: contact.invitation.name,
    at: contact.invitation.at,
  },
})

const missing = (address: string, erasedAt: Person['erasedAt']): string =>
  `There is no contact with the address ${address}.${erasedAt ? ` It was erased at ${moment(erasedAt)}.` : ''}`

/**
 * Writes everything that is stored about one person to standard output, as one JSON object: also if only their erasure
 * is known. Without anything it fails.
 */
export async function showPerson(config: Config, address: string): Promise<void> {
  const person = await operatorOf(config).person(address)
  const { contact, deliveries, erasedAt } = person
  if (contact === undefined && erasedAt === undefined) return fail(missing(address, erasedAt))
  const known = {
    address,
    contact: contact === undefined ? null : whole(contact),
    deliveries,
    erasedAt: erasedAt ?? null,
    copies: copiesOf(person, config),
  }
  return print([toJson(known, 2)])
}

/** Where else the contact is, as far as is known here. */
function copiesOf({ contact, deliveries }: Person, { provider }: Pick<Config, 'provider'>): object[] {
  const { state, providerId = null } = contact ?? {}
  const isOnTheList = state === 'listed' || state === 'invited'
  const there = providerId !== null || (isOnTheList && provider !== null)
  return [
    ...(there ? [{ at: provider?.name ?? 'a former provider', contactId: providerId }] : []),
    ...deliveries
      .filter(({ state }) => state === 'delivered')
      .map(({ destination, settledAt }) => ({ at: destination, since: settledAt })),
  ]
}

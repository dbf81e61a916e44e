import type { Config } from '../config/load.ts'
import { type Contact, type DeliveryRecord, eventId, type Invitation } from '../signup/contact.ts'
import { type ContactFilter, newestContacts, type Person, personOf } from '../store/contacts.ts'
import { withDatabase } from '../store/open.ts'
import {
  type Columns,
  contactColumns,
  contactRecord,
  counted,
  type ExitCode,
  facts,
  fail,
  type Io,
  type ListingOptions,
  listing,
  moment,
  print,
  table,
  toJson,
} from './output.ts'

/** Prints the contacts that were added last, the last one first. */
export async function list(
  { store }: Config,
  { limit, json, ...filter }: ContactFilter & ListingOptions,
  io: Io,
): Promise<ExitCode> {
  const found = await withDatabase(store, ({ read }) => read(tx => newestContacts(tx, filter, limit + 1)))
  return listing(io, found, { limit, json, columns: contactColumns, toRecord: contactRecord })
}

/** Prints everything that is stored about one person, also if only their erasure is known. */
export async function show(config: Config, address: string, { json }: { json?: true }, io: Io): Promise<ExitCode> {
  const person = await withDatabase(config.store, ({ read }) => read(tx => personOf(tx, address)))
  const { contact, deliveries, erasedAt } = person
  if (contact === undefined && erasedAt === undefined)
    return fail(io, `There is no contact with the address ${address}.`)
  if (json) {
    const known = {
      address,
      contact: contact === undefined ? null : record(contact),
      deliveries,
      erasedAt: erasedAt ?? null,
      copies: copiesOf(person, config),
    }
    await print(io, [toJson(known, 2)])
  } else if (contact === undefined) {
    await print(io, facts({ address, erased: moment(erasedAt!) }))
  } else {
    const sent = deliveries.length === 0 ? ['There are no deliveries.\n'] : table(columns, deliveries)
    await print(io, [...history(contact, erasedAt), '\n', ...sent])
  }
  return 0
}

const history = (contact: Contact, erasedAt: Date | undefined): readonly string[] => {
  const { id, name, email, state, reason, createdAt, confirmation, confirmedAt, providerId, event } = contact
  const { invitation } = contact
  return facts({
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
  })
}

const states = {
  unconfirmed: 'unconfirmed: waits until its address is confirmed',
  pending: 'pending: the provider has not taken it yet',
  held: 'held: waits until it is released',
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

const columns: Columns<DeliveryRecord> = {
  delivery: ({ number }) => String(number),
  state: ({ state }) => state,
  destination: ({ destination }) => destination,
  attempts: ({ attempts }) => String(attempts),
  'due or settled': ({ due, settledAt }) => moment(settledAt ?? due),
  why: ({ why }) => why ?? '',
}

const record = (contact: Contact) => ({
  ...contactRecord(contact),
  providerId: contact.providerId,
  confirmation: contact.confirmation,
  event: contact.event && { id: eventId(contact, 'joined'), ...contact.event },
  invitation: contact.invitation?.name && {
    id: eventId(contact, 'invited'),
    name: contact.invitation.name,
    at: contact.invitation.at,
  },
})

/** Who else has a copy, as far as is known here. */
function copiesOf({ contact, deliveries }: Person, { provider }: Pick<Config, 'provider'>): object[] {
  const { state, providerId = null } = contact ?? {}
  const isOnTheList = state === 'listed' || state === 'invited'
  const isThere = providerId !== null || (isOnTheList && provider !== null)
  return [
    ...(isThere ? [{ at: provider?.name ?? 'a former provider', contactId: providerId }] : []),
    ...deliveries
      .filter(({ state }) => state === 'delivered')
      .map(({ destination, settledAt }) => ({ at: destination, since: settledAt })),
  ]
}

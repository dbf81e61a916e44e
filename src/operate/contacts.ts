import type { Config } from '../config/load.ts'
import { type Contact, type ContactState, eventId } from '../signup/contact.ts'
import { type ContactFilter, newestContacts } from '../store/contacts.ts'
import { type Person, personOf } from '../store/deliveries.ts'
import { withDatabase } from '../store/open.ts'
import { deliveryColumns } from './deliveries.ts'
import {
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
    const sent = deliveries.length === 0 ? ['There are no deliveries.\n'] : table(deliveryColumns, deliveries)
    await print(io, [...history(contact, erasedAt), '\n', ...sent])
  }
  return 0
}

function history(contact: Contact, erasedAt: Date | undefined): readonly string[] {
  const { id, name, email, state, reason, createdAt, confirmation, confirmedAt, providerId, event } = contact
  const { source = {}, invitation } = contact
  return facts({
    id,
    name,
    address: email,
    state,
    ...(reason && { reason }),
    ...(erasedAt && { erased: `${moment(erasedAt)}; they signed up again` }),
    'signed up': moment(createdAt),
    ...(confirmation && {
      asked: `${counted(confirmation.times, 'time')} to confirm, last at ${moment(confirmation.at)}`,
    }),
    ...(confirmedAt && { confirmed: moment(confirmedAt) }),
    joined: event
      ? `${moment(event.at)}, ${event.name}, ${eventId(contact, 'joined')}`
      : `without an event${why[state]}`,
    ...(invitation && {
      invited: `${moment(invitation.at)}, ${invitation.name}, ${eventId(contact, 'invited')}`,
      code: invitation.code,
      redeemed: invitation.redeemedAt ? moment(invitation.redeemedAt) : 'not yet',
    }),
    source:
      Object.entries(source)
        .map(each => each.join('='))
        .join(', ') || 'not known',
    ...(providerId !== undefined && { 'provider id': providerId }),
  })
}

const IMPORTED = ': imported, or known to the provider before'

/** Why a contact in a state has no event. */
const why: Readonly<Record<ContactState, string>> = {
  unconfirmed: ' until its address is confirmed',
  pending: ' until the provider has taken it',
  held: ' until it is released',
  listed: IMPORTED,
  invited: IMPORTED,
}

const record = (contact: Contact) => ({
  ...contactRecord(contact),
  providerId: contact.providerId,
  confirmation: contact.confirmation,
  event: contact.event && { id: eventId(contact, 'joined'), ...contact.event },
  invitation: contact.invitation && {
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

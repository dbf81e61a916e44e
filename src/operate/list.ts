import type { Config } from '../config/load.ts'
import { type Contact, sourceLabel } from '../signup/contact.ts'
import { type ContactFilter, newestContacts } from '../store/contacts.ts'
import { withDatabase } from '../store/open.ts'
import { type Columns, contactRecord, type ExitCode, type Io, type ListingOptions, listing, moment } from './output.ts'

/** Prints the contacts that were added last, the last one first. */
export async function list(
  { store }: Config,
  { limit, json, ...filter }: ContactFilter & ListingOptions,
  io: Io,
): Promise<ExitCode> {
  const found = await withDatabase(store, ({ read }) => read(tx => newestContacts(tx, filter, limit + 1)))
  return listing(io, found, { limit, json, columns, toRecord: contactRecord })
}

const columns: Columns<Contact> = {
  'signed up': ({ createdAt }) => moment(createdAt),
  state: ({ state, reason }) => (reason === undefined ? state : `${state}: ${reason}`),
  name: ({ name }) => name,
  address: ({ email }) => email,
  source: ({ source }) => sourceLabel(source) ?? '',
}

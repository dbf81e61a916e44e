import type { Config } from '../config/load.ts'
import { type ContactFilter, newestContacts } from '../store/contacts.ts'
import { withDatabase } from '../store/open.ts'
import { contactColumns, contactRecord, type ExitCode, type Io, type ListingOptions, listing } from './output.ts'

/** Prints the contacts that were added last, the last one first. */
export async function list(
  { store }: Config,
  { limit, json, ...filter }: ContactFilter & ListingOptions,
  io: Io,
): Promise<ExitCode> {
  const found = await withDatabase(store, ({ read }) => read(tx => newestContacts(tx, filter, limit + 1)))
  return listing(io, found, { limit, json, columns: contactColumns, toRecord: contactRecord })
}

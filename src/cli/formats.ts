import { type Contact, type Source, sourceParameters } from '../waitlist/contact.ts'

/** What `export` writes. */
export const exportFormats = ['csv', 'json'] as const
export type ExportFormat = (typeof exportFormats)[number]

/** What `deliveries list` writes. */
export const listFormats = ['table', 'json'] as const
export type ListFormat = (typeof listFormats)[number]

/** A contact in a file: what an import needs to make the same contact again. */
export interface ExportedContact extends Pick<Contact, 'id' | 'name' | 'email' | 'state' | 'createdAt'> {
  /** Absent if it is not known. */
  readonly source?: Source | undefined
}

export const exported = ({ id, name, email, state, createdAt, source }: Contact): ExportedContact => ({
  id,
  name,
  email,
  state,
  createdAt,
  source,
})

/** The columns of the CSV, always all of them: the members of a contact, then those of its source. Empty: not known. */
export const csvColumns = ['id', 'name', 'email', 'state', 'createdAt', ...sourceParameters] as const

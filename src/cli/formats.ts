import { type Contact, type Source, sourceParameters } from '../waitlist/rules/contact.ts'

/** What `export` writes. */
export const exportFormats = ['csv', 'json'] as const
export type ExportFormat = (typeof exportFormats)[number]

/** What `deliveries list` writes. */
export const listFormats = ['table', 'json'] as const
export type ListFormat = (typeof listFormats)[number]

/** A contact in a file: what an import needs to make the same contact again. */
export interface ExportedContact extends Pick<Contact, 'id' | 'name' | 'email' | 'state' | 'createdAt' | 'heldFor'> {
  /** Absent if it is not known. */
  readonly source?: Source | undefined
}

export const exported = ({ id, name, email, state, createdAt, source, heldFor }: Contact): ExportedContact => ({
  id,
  name,
  email,
  state,
  createdAt,
  source,
  heldFor,
})

/** The state in the CSV: that of a contact that is held has the reason too. */
export const csvState = ({ state, heldFor }: Pick<Contact, 'state' | 'heldFor'>): string =>
  heldFor === undefined ? state : `${state}:${heldFor}`

/** The columns of the CSV, always all of them: the members of a contact, then those of its source. Empty: not known. */
export const csvColumns = ['id', 'name', 'email', 'state', 'createdAt', ...sourceParameters] as const

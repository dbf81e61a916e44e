import { type Contact, sourceParameters } from '../signup/contact.ts'

/** What `export` writes. */
export const exportFormats = ['csv', 'json'] as const
export type ExportFormat = (typeof exportFormats)[number]

/** What `deliveries list` writes. */
export const listFormats = ['table', 'json'] as const
export type ListFormat = (typeof listFormats)[number]

/** A contact in a file: what an import needs to make the same contact again. */
export const exported = ({ id, name, email, state, createdAt, source, reason, invitation, confirmedAt }: Contact) => ({
  id,
  name,
  email,
  state,
  createdAt,
  source,
  reason,
  invitedAt: invitation?.at,
  code: invitation?.code,
  redeemedAt: invitation?.redeemedAt,
  confirmedAt,
})

/** The state in the CSV: that of a contact that is held has the reason too. */
export const csvState = ({ state, reason }: Pick<Contact, 'state' | 'reason'>): string =>
  reason === undefined ? state : `${state}:${reason}`

/** The columns of what came later: the invitation, and the confirmation of the address. */
export const laterColumns = ['invitedAt', 'code', 'redeemedAt', 'confirmedAt'] as const

/** The columns of the CSV, always all of them: the members of a contact, its source, and what came later. Empty: there is none. */
export const csvColumns = ['id', 'name', 'email', 'state', 'createdAt', ...sourceParameters, ...laterColumns] as const

/**
 * One field of CSV (RFC 4180). Spreadsheets run text that starts like a formula, and anybody may sign up with such a name.
 * An apostrophe before it keeps it text (OWASP, "CSV Injection"); before text that looks as if that was done already, too,
 * so that `withoutApostrophe` can undo it. The JSON export is exact by itself.
 */
export function csvField(text: string): string {
  const harmless = /^'*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** What a field of ours meant, once its quotation marks are gone. */
export const withoutApostrophe = (field: string): string => (/^'+[=+\-@＝＋－＠]/.test(field) ? field.slice(1) : field)

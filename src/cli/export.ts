import type { Config } from '../config.ts'
import { operatorOf } from '../operator.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { ExportFormat } from './formats.ts'
import { print } from './print.ts'

/** Writes all contacts to standard output: CSV (RFC 4180), or JSON with one object a line. */
export async function exportContacts(config: Config, format: ExportFormat): Promise<void> {
  const contacts = await (await operatorOf(config)).contacts()
  await print(format === 'csv' ? csv(contacts) : json(contacts))
}

const columns = ['id', 'name', 'email', 'state', 'createdAt'] as const

type Contacts = Iterable<Contact> | AsyncIterable<Contact>

async function* csv(contacts: Contacts): AsyncGenerator<string> {
  yield `${columns.join(',')}\r\n`
  for await (const contact of contacts) {
    const { id, name, email, state, createdAt } = contact
    yield `${[id, name, email, state, createdAt.toISOString()].map(csvField).join(',')}\r\n`
  }
}

/**
 * One field. Spreadsheets run text that starts like a formula, and anybody may sign up with such a name. An apostrophe
 * before it keeps it text (OWASP, "CSV Injection"). The JSON export is exact.
 */
function csvField(text: string): string {
  const harmless = /^[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

async function* json(contacts: Contacts): AsyncGenerator<string> {
  for await (const contact of contacts) yield `${JSON.stringify(contact)}\n`
}

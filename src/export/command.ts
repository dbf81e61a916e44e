import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/load.ts'
import { contactRecord, counted, type ExitCode, type Io, inChunks, plain, print, toJson } from '../operate/output.ts'
import { type Contact, sourceParameters } from '../signup/contact.ts'
import { writeAtomically } from '../store/atomic.ts'
import { type ContactFilter, contactPages } from '../store/contacts.ts'
import { withDatabase } from '../store/open.ts'

export interface ExportOptions extends ContactFilter {
  /** One JSON object a line, in place of CSV. */
  readonly json?: true
  readonly output?: string
}

/**
 * Writes contacts to standard output or to a new file, and says on standard error how many. A file is complete when it
 * appears; what a killed export leaves goes with the next one.
 */
export async function exportContacts(
  { store }: Config,
  { json, output, ...filter }: ExportOptions,
  io: Io,
): Promise<ExitCode> {
  const isForPeople = output === undefined && io.stdout.isTTY === true
  const line = json ? jsonLine : isForPeople ? plainCsvLine : csvLine
  const states = new Map<string, number>()
  let count = 0
  return withDatabase<ExitCode>(store, async ({ read }) => {
    async function* texts(): AsyncGenerator<string> {
      if (!json) yield `${isForPeople ? '' : BYTE_ORDER_MARK}${Object.keys(columns).join(',')}\r\n`
      for await (const page of contactPages(read, filter)) {
        for (const contact of page) {
          count++
          states.set(contact.state, (states.get(contact.state) ?? 0) + 1)
          yield line(contact)
        }
      }
    }
    if (output === undefined) await print(io, texts())
    else await writeAtomically(output, file => pipeline(inChunks(texts()), createWriteStream(file)))
    io.stderr.write(
      `${output === undefined ? '' : `${output}: `}${counted(count, 'contact')}.${withheld(states, filter)}\n`,
    )
    return 0
  })
}

/** Nobody should send these a mail by accident. */
function withheld(states: ReadonlyMap<string, number>, { state }: ContactFilter): string {
  const kept = ['held', 'unconfirmed'].filter(each => states.has(each)).map(each => `${states.get(each)} ${each}`)
  if (state !== undefined || kept.length === 0) return ''
  return ` Among them ${kept.join(' and ')}: --state listed leaves them out.`
}

/** Excel reads a CSV file without it in the code page of the computer, and garbles names. */
const BYTE_ORDER_MARK = '\uFEFF'

/** The columns of the CSV. */
const columns: Readonly<Record<string, (contact: Contact) => string | undefined>> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  email: ({ email }) => email,
  state: ({ state }) => state,
  reason: ({ reason }) => reason,
  createdAt: ({ createdAt }) => createdAt.toISOString(),
  ...Object.fromEntries(sourceParameters.map(name => [name, ({ source }: Contact) => source?.[name]])),
  invitedAt: ({ invitation }) => invitation?.at.toISOString(),
  code: ({ invitation }) => invitation?.code,
  redeemedAt: ({ invitation }) => invitation?.redeemedAt?.toISOString(),
  confirmedAt: ({ confirmedAt }) => confirmedAt?.toISOString(),
}

function csvLine(contact: Contact): string {
  const fields = Object.values(columns).map(text => csvField(text(contact) ?? ''))
  return `${fields.join(',')}\r\n`
}

/**
 * One field of CSV (RFC 4180). Spreadsheets run text that starts like a formula, and anybody may sign up with such a name. An
 * apostrophe before it keeps it text (OWASP, "CSV Injection"). The JSON export is exact.
 */
function csvField(text: string): string {
  const harmless = /^[=+\-@＝＋－＠\t\r]/.test(text) ? `'${text}` : text
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** For a terminal, which a name may not control. */
const plainCsvLine = (contact: Contact): string => `${plain(csvLine(contact)).trimEnd()}\r\n`

const jsonLine = (contact: Contact): string => toJson(contactRecord(contact))

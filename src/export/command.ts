import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/load.ts'
import {
  contactFields,
  contactRecord,
  counted,
  type ExitCode,
  fail,
  type Io,
  inChunks,
  print,
  toJson,
} from '../operate/output.ts'
import type { Contact } from '../signup/contact.ts'
import { writeAtomically } from '../store/atomic.ts'
import { type ContactFilter, contactPages } from '../store/contacts.ts'
import { withDatabase } from '../store/open.ts'

interface ExportOptions extends ContactFilter {
  /** One JSON object a line, in place of CSV. */
  readonly json?: true
  readonly output?: string
}

/** Excel reads a CSV file without it in the code page of the computer, and garbles names. */
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Writes contacts to standard output or to a new file, and says on standard error how many of each state. A file is complete
 * when it appears; what a killed export leaves goes with the next one.
 */
export async function exportContacts(
  { store }: Config,
  { json, output, ...filter }: ExportOptions,
  io: Io,
): Promise<ExitCode> {
  const states = new Map<string, number>()
  let count = 0
  return withDatabase<ExitCode>(store, async ({ read }) => {
    async function* texts(): AsyncGenerator<string> {
      if (!json) yield `${BYTE_ORDER_MARK}${contactFields.join(',')}\r\n`
      for await (const page of contactPages(read, filter)) {
        for (const contact of page) {
          count++
          states.set(contact.state, (states.get(contact.state) ?? 0) + 1)
          yield json ? toJson(contactRecord(contact)) : csvLine(contact)
        }
      }
    }
    if (output === undefined) await print(io, texts())
    else await writeAtomically(output, file => pipeline(inChunks(texts()), createWriteStream(file)))
    if (count === 0) return fail(io, 'nothing was found.')
    const each = [...states].map(([state, of]) => `${of} ${state}`).join(', ')
    io.stderr.write(
      `${output === undefined ? '' : `${output}: `}${counted(count, 'contact')}${each && ` (${each})`}.\n`,
    )
    return 0
  })
}

function csvLine(contact: Contact): string {
  const { source, ...record } = contactRecord(contact)
  const values: Readonly<Record<string, string | Date | undefined>> = { ...record, ...source }
  return `${contactFields.map(field => csvField(values[field])).join(',')}\r\n`
}

/**
 * One field of CSV (RFC 4180). Spreadsheets run text that starts like a formula, and anybody may sign up with such a name. An
 * apostrophe before it keeps it text (OWASP, "CSV Injection"). The JSON export is exact.
 */
function csvField(value: string | Date | undefined): string {
  const text = value instanceof Date ? value.toISOString() : (value ?? '')
  const harmless = /^[=+\-@＝＋－＠\t\r]/.test(text) ? `'${text}` : text
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

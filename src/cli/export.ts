import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { type Contact, sourceParameters } from '../signup/contact.ts'
import { writeAtomically } from '../store/atomic.ts'
import type { ContactFilter } from '../store/contacts.ts'
import { fail, untilStopped } from './console.ts'
import { csvColumns, csvField, csvState, type ExportFormat, exported } from './formats.ts'
import { counted, counter, inChunks, print, toJson } from './print.ts'
import { plain } from './text.ts'

export interface ExportOptions extends ContactFilter {
  readonly format: ExportFormat
  readonly output?: string
  /** Whether CSV begins with a byte order mark. */
  readonly bom: boolean
}

/** Excel reads a CSV file without it in the code page of the computer, and garbles names. */
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Writes contacts to standard output or a new file: CSV (RFC 4180), or JSON with one object a line. A file is complete
 * when it appears; Ctrl-C leaves nothing of it.
 */
export async function exportContacts(config: Config, { format, output, bom, ...filter }: ExportOptions): Promise<void> {
  const watched = process.stderr.isTTY && (output !== undefined || !process.stdout.isTTY)
  const found = operatorOf(config).contacts(filter)
  const contacts = watched ? withProgress(found) : found
  const isForPeople = output === undefined && process.stdout.isTTY
  const isMarked = bom && !isForPeople
  const heading = format === 'csv' ? `${isMarked ? BYTE_ORDER_MARK : ''}${csvColumns.join(',')}\r\n` : ''
  const line = format === 'json' ? jsonLine : isForPeople ? plainCsvLine : csvLine
  const left = { held: 0, unconfirmed: 0 }
  async function* texts(): AsyncGenerator<string> {
    yield heading
    for await (const contact of contacts) {
      if (contact.state === 'held' || contact.state === 'unconfirmed') left[contact.state]++
      yield line(contact)
    }
    const notes = filter.state === undefined ? Object.entries(left).filter(([, count]) => count > 0) : []
    for (const [state, count] of notes) process.stderr.write(noteOf(state, count))
  }
  if (output === undefined) return print(texts())
  await untilStopped(async signal => {
    try {
      await writeAtomically(output, unfinished =>
        pipeline(inChunks(texts()), createWriteStream(unfinished), { signal }),
      )
    } catch (error) {
      if (!signal.aborted) throw error
      fail(`stopped before the end, so there is no ${output}. Run the same command again.`)
    }
  })
}

/** Nobody should send these a mail by accident. */
const noteOf = (state: string, count: number): string =>
  `${counted(count, 'of them is', 'of them are')} ${state}, as column state says; --state listed leaves them out.\n`

async function* withProgress(contacts: AsyncIterable<Contact>): AsyncGenerator<Contact> {
  const line = counter()
  try {
    let done = 0
    for await (const contact of contacts) {
      yield contact
      line.show('exporting', ++done)
    }
  } finally {
    line.end()
  }
}

function csvLine(contact: Contact): string {
  const { id, name, email, createdAt, source, invitation, confirmedAt } = contact
  const origin = sourceParameters.map(parameter => source?.[parameter] ?? '')
  const { at, code, redeemedAt } = invitation ?? {}
  const later = [at?.toISOString(), code, redeemedAt?.toISOString(), confirmedAt?.toISOString()]
  const rest = [...origin, ...later.map(each => each ?? '')]
  return `${id},${csvField(name)},${csvField(email)},${csvState(contact)},${createdAt.toISOString()},${rest.map(csvField).join(',')}\r\n`
}

/** For a terminal, which a name may not control. */
const plainCsvLine = (contact: Contact): string => `${plain(csvLine(contact)).trimEnd()}\r\n`

const jsonLine = (contact: Contact): string => toJson(exported(contact))

import type { Config } from '../config/load.ts'
import { counted, type ExitCode, fail, type Io, number, print } from '../operate/output.ts'
import { STEP } from '../store/bulk.ts'
import { withDatabase } from '../store/open.ts'
import { type ColumnOptions, contactsIn } from './csv.ts'
import { type ImportRow, importContacts } from './store.ts'

export interface ImportOptions extends ColumnOptions {
  /** Whether they are treated like new signups. */
  readonly announce?: true
  readonly dryRun?: true
}

/** Lines without a contact that are shown. */
const SHOWN = 100

/**
 * Adds the contacts of a file, and reports what became of them: exit code 0 only if each line is a contact.
 *
 * @throws {OperatorError} when the database or the file cannot be used.
 */
export async function importFile(
  { store, signupTargets }: Config,
  file: string,
  { announce, dryRun, ...columns }: ImportOptions,
  io: Io,
): Promise<ExitCode> {
  const targets = announce ? signupTargets : null
  const invalid: string[] = []
  let count = 0

  async function* batches(): AsyncGenerator<readonly ImportRow[]> {
    let batch: ImportRow[] = []
    for await (const { line, contact } of contactsIn(file, columns, io)) {
      if (!('problem' in contact)) batch.push(contact)
      else if (++count <= SHOWN) invalid.push(`line ${line}: ${contact.problem}`)
      if (batch.length < STEP) continue
      yield batch
      batch = []
    }
    yield batch
  }

  const { added, existing, erased } = await withDatabase(store, database =>
    importContacts(database, batches(), { targets, dryRun: dryRun === true }),
  )
  await print(io, [
    `${number(added)} ${dryRun ? 'would be added' : 'added'}, ${number(existing)} on the list before,` +
      ` ${number(erased)} erased before, ${number(count)} not valid.\n`,
    targets !== null && !dryRun && added > 0 ? 'The running service announces them.\n' : '',
  ])
  if (count === 0) return 0
  const rest = count > SHOWN ? [`and ${number(count - SHOWN)} more`] : []
  return fail(io, `${counted(count, 'line is', 'lines are')} not valid:`, [...invalid, ...rest])
}

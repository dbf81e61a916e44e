import { existsSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config/load.ts'
import { OperatorError } from '../config/operator.ts'
import { counted, counter, type ExitCode, fail, type Io, misused, number, print, toJson } from '../operate/output.ts'
import { EMAIL_PATTERN } from '../signup/contact.ts'
import type { Problem } from '../signup/parse.ts'
import { STEP } from '../store/bulk.ts'
import { withDatabase } from '../store/open.ts'
import { type ColumnOptions, columnsIn, describeColumns, rawContact } from './columns.ts'
import { parseContact } from './contact.ts'
import { type FileRecord, recordsOf } from './read.ts'
import { type Imported, type ImportRow, importContacts } from './store.ts'

export interface ImportOptions extends ColumnOptions {
  readonly dryRun?: true
  /** Whether they are treated like new signups. */
  readonly announce?: true
  readonly json?: true
}

/** Lines without a contact that are shown, and those in the JSON. */
const SHOWN = 20
const KEPT = 1_000

/**
 * Adds the contacts of a file, and reports what became of them: exit code 0 only if each line is a contact.
 *
 * @throws {OperatorError} when the database or the file cannot be used.
 */
export async function importFile(
  { store, signupTargets }: Config,
  file: string,
  options: ImportOptions,
  io: Io,
): Promise<ExitCode> {
  const { json, announce } = options
  const targets = announce ? signupTargets : null
  const dryRun = options.dryRun === true
  const { format, records } = await recordsOf(file, io.stdin)
  if (format === 'json' && (options.map ?? options.ignore) !== undefined) {
    return misused(io, '--map and --ignore are for CSV; the members of JSON Lines have our names.')
  }
  const contacts = format === 'json' ? records : await csvContacts(records, options, io)
  const progress = counter(io)
  const invalid: { line: number; reason: string }[] = []
  let [count, problem] = [0, '']

  async function* batches(): AsyncGenerator<readonly ImportRow[]> {
    const now = Date.now()
    let batch: ImportRow[] = []
    try {
      for await (const record of contacts) {
        const row = 'problem' in record ? record : parseContact(record.value, now)
        if (!('problem' in row)) batch.push(row)
        else if (++count <= KEPT) invalid.push({ line: record.line, reason: row.problem })
        if (batch.length < STEP) continue
        yield batch
        batch = []
      }
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      problem = error.message
    }
    yield batch
  }

  const onProgress = ({ added, existing, erased }: Imported) =>
    progress.show('importing', added + existing + erased + count)
  const importing = { targets, dryRun, onProgress }
  const isMissing = store.kind === 'sqlite' && !existsSync(store.path)
  if (isMissing) io.stderr.write(`There is no list yet: it ${dryRun ? 'would be' : 'is'} made at ${store.path}.\n`)
  // To try an import without a list, an empty one is made for as long as it takes.
  await using folder = isMissing && dryRun ? await mkdtempDisposable(join(tmpdir(), 'waitlist-')) : null
  const location = folder === null ? store : { kind: 'sqlite' as const, path: join(folder.path, 'waitlist.db') }
  const imported = await withDatabase(location, database => importContacts(database, batches(), importing), {
    make: !dryRun || folder !== null,
  }).finally(progress.end)
  if (json) await print(io, [toJson({ ...imported, invalid: count, lines: invalid })])
  else await print(io, report(imported, count, dryRun, targets !== null))
  if (problem !== '') fail(io, `${problem} Nothing after that was read.`)
  if (count === 0) return problem === '' ? 0 : 1
  const sentence = `${counted(count, 'line is', 'lines are')} not valid`
  if (json) return fail(io, `${sentence}.`)
  const shown = invalid.slice(0, SHOWN).map(({ line, reason }) => `line ${line}: ${reason}`)
  const rest = count > SHOWN ? [`and ${number(count - SHOWN)} more; --json has the first ${number(KEPT)}`] : []
  return fail(io, `${sentence}:`, [...shown, ...rest])
}

function* report({ added, existing, erased }: Imported, invalid: number, dryRun: boolean, announced: boolean) {
  yield `${number(added)} ${dryRun ? 'would be added' : 'added'}, ${number(existing)} on the list before,`
  yield ` ${number(erased)} erased before, ${number(invalid)} not valid.\n`
  if (announced && !dryRun && added > 0) yield 'The running service announces them.\n'
}

const address = new RegExp(`^${EMAIL_PATTERN}$`)
/**
 * The contacts of a CSV file, and as problems the lines with more columns than the heading, or fewer. What is guessed is said
 * first.
 */
async function csvContacts(
  records: AsyncGenerator<FileRecord<readonly string[]>>,
  options: ColumnOptions,
  io: Io,
): Promise<AsyncGenerator<FileRecord<unknown> | ({ readonly line: number } & Problem)>> {
  const { value: first } = await records.next()
  const heading = first?.value.map((field: string) => field.trim()) ?? []
  // A list of addresses alone, without a heading.
  const isBare = heading.length === 1 && address.test(heading[0]!) && options.map === undefined
  const columns = isBare ? { email: [0] } : columnsIn(heading, options)
  if (!isBare && options.map === undefined) io.stderr.write(describeColumns(columns, heading))
  if (columns.name === undefined) io.stderr.write('The part of each address before the @ is taken as the name.\n')
  return (async function* () {
    if (isBare) yield { line: first.line, value: rawContact(heading, columns) }
    for await (const { line, value } of records) {
      if (value.length === heading.length) yield { line, value: rawContact(value, columns) }
      else yield { line, problem: `it has ${value.length} columns, and the heading ${heading.length}` }
    }
  })()
}

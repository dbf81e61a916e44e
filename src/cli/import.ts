import { signupTargetsOf } from '../app/adapters.ts'
import { operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import type { Imported, ImportRow } from '../import/store.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import { fail, misused, untilStopped } from './console.ts'
import {
  type BadLine,
  type Columns,
  csvReader,
  guessedColumns,
  type Line,
  mappedColumns,
  ownColumns,
  readJsonLine,
  type Unclear,
} from './import/contacts.ts'
import { nameOf, type Records, recordsOf, textOf } from './import/records.ts'
import { counted, counter, number, print } from './print.ts'

export interface ImportOptions {
  /** Column names by the members of a contact. */
  readonly map?: Readonly<Record<string, string>>
  readonly dryRun?: true
  readonly announce?: true
  readonly json?: true
}

const STOPPED = 'stopped before the end. Run the same command again: it goes on.'

/** Bad lines that are shown. */
const SHOWN = 20

/**
 * Adds the contacts of a file, and reports what became of them. The exit code is 0 only if each line is a contact. Ctrl-C
 * stops it between two batches; run again, it goes on.
 *
 * @throws {OperatorError} when the store or the file cannot be used.
 */
export async function importContacts(config: Config, file: string, options: ImportOptions): Promise<void> {
  await untilStopped(signal => importUntil(signal, config, file, options))
}

async function importUntil(signal: AbortSignal, config: Config, file: string, options: ImportOptions): Promise<void> {
  const line = counter()
  try {
    const records = await recordsOf(textOf(file, signal), nameOf(file))
    const lines = linesIn(records, options.map)
    if ('unclear' in lines) return options.map === undefined ? fail(lines.unclear) : misused(lines.unclear)
    const operator = operatorOf(config)
    const targets = options.announce ? await signupTargetsOf(config) : null
    const invalid = invalidLines()
    const { rows, problem } = rowsIn(lines, invalid)
    const onProgress = (soFar: Imported) => line.show('importing', countOf(soFar) + invalid.count())
    const dryRun = options.dryRun === true
    if (operator.isMissing()) {
      process.stderr.write(`There is no database yet: it ${dryRun ? 'would be' : 'is'} made.\n`)
    }
    const imported = await operator.importContacts(rows, { targets, dryRun, onProgress, signal })
    line.end()
    await report(imported, invalid, options)
    if (signal.aborted) throw new OperatorError(STOPPED)
    if (problem() !== undefined) fail(`${problem()} Nothing after that was read.`)
  } catch (error) {
    throw signal.aborted ? new OperatorError(STOPPED) : error
  } finally {
    line.end()
  }
}

/** The lines of a file as contacts. What is guessed is shown first. */
function linesIn(records: Records, map: ImportOptions['map']): AsyncIterable<readonly Line[]> | Unclear {
  const now = Date.now()
  if (records.format === 'json') {
    if (map !== undefined) return { unclear: '--map is for CSV; the members of JSON Lines have the names of ours.' }
    return mapped(records.records, record => readJsonLine(record, now))
  }
  const { heading } = records
  const own = map === undefined ? ownColumns(heading) : undefined
  const columns = own ?? (map === undefined ? guessedColumns(heading) : mappedColumns(heading, map))
  if ('unclear' in columns) return columns
  if (own === undefined && map === undefined) process.stderr.write(guessIn(columns, heading))
  const read = csvReader(columns, heading.length, own !== undefined)
  return mapped(records.records, record => read(record, now))
}

async function* mapped<From, To>(batches: AsyncIterable<readonly From[]>, make: (each: From) => To) {
  for await (const batch of batches) yield batch.map(make)
}

/** Well-known headings alone, so there is nothing in it that a terminal would not just show. */
function guessIn(columns: Columns, heading: readonly string[]): string {
  const guesses = Object.entries(columns).map(
    ([member, found]) => `${member} is ${found.map(i => `"${heading[i]}"`).join(' and ')}`,
  )
  return `Guessed by the heading: ${guesses.join('; ')}. The other columns are not read. --map says it otherwise.\n`
}

/** Notes bad lines. A file that cannot be read to its end ends there, and `problem` says why. */
function rowsIn(lines: AsyncIterable<readonly Line[]>, invalid: InvalidLines) {
  let problem: string | undefined
  async function* rows(): AsyncGenerator<readonly ImportRow[]> {
    try {
      for await (const batch of lines) {
        for (const line of batch) if ('bad' in line) invalid.note(line.bad)
        yield batch.filter(line => !('bad' in line)) as ImportRow[]
      }
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      problem = error.message
    }
  }
  return { rows: rows(), problem: () => problem }
}

const countOf = ({ added, existing, erased }: Imported): number => added + existing + erased

async function report(imported: Imported, invalid: InvalidLines, options: ImportOptions): Promise<void> {
  const { json, dryRun, announce } = options
  const { added, existing, erased } = imported
  const { first } = invalid
  const count = invalid.count()
  if (json) {
    const lines = { invalid: count, lines: first, more: count - first.length }
    await print([`${JSON.stringify({ added, existing, erased, ...lines })}\n`])
  } else {
    await print([
      `${number(added)} ${dryRun ? 'would be added' : 'added'}, ${number(existing)} on the list before,` +
        ` ${number(erased)} erased before, ${number(count)} not valid.\n`,
      announce && !dryRun && added > 0 ? 'The running service announces them.\n' : '',
    ])
  }
  if (count === 0) return
  const shown = json ? [] : first.slice(0, SHOWN).map(({ line, reason }) => `line ${line}: ${reason}`)
  const more = count - shown.length
  if (shown.length > 0 && more > 0) shown.push(`and ${number(more)} more; --json has the first ${number(KEPT)}`)
  fail(`${counted(count, 'line is', 'lines are')} not valid${shown.length === 0 ? '.' : ':'}`, shown)
}

/** Bad lines that are kept. */
const KEPT = 1_000

type InvalidLines = ReturnType<typeof invalidLines>

function invalidLines() {
  let count = 0
  const first: BadLine[] = []
  return {
    count: () => count,
    first: first as readonly BadLine[],
    note(bad: BadLine): void {
      count++
      if (first.length < KEPT) first.push(bad)
    },
  }
}

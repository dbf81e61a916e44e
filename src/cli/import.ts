import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { announcementOf } from '../app/adapters.ts'
import { type Entry, type Imported, operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import { fail, misused, untilStopped } from './console.ts'
import { csvField } from './formats.ts'
import type { BadLine, Given } from './import/contacts.ts'
import {
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
  readonly report?: string
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
  let report: Reporting | undefined
  try {
    const records = await recordsOf(textOf(file, signal), nameOf(file))
    const lines = linesIn(records, options.map)
    if ('unclear' in lines) return options.map === undefined ? fail(lines.unclear) : misused(lines.unclear)
    const operator = await operatorOf(config)
    const announcement = options.announce ? await announcementOf(config) : null
    report = reporting(options.report)
    const { entries, problem } = entriesIn(lines, report)
    const progress = (soFar: Imported) => line.show('importing', rowsIn(soFar, report!))
    const dryRun = options.dryRun === true
    const made = (store: string) =>
      process.stderr.write(
        dryRun
          ? `There is no database at ${store} yet: it would be made.\n`
          : `There was no database at ${store}: it is made.\n`,
      )
    const wish = { announcement, dryRun, made, progress, signal }
    const imported = await operator.importContacts(entries, wish)
    line.end()
    await tell(imported, report, options)
    if (signal.aborted) throw new OperatorError(STOPPED)
    if (problem() !== undefined) fail(`${problem()} Nothing after that was read.`)
  } catch (error) {
    // It would be in the way of the next attempt.
    if (report !== undefined && options.report !== undefined) rmSync(options.report, { force: true })
    throw signal.aborted ? new OperatorError(STOPPED) : error
  } finally {
    line.end()
    report?.close()
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

/** Notes bad lines in the report. A file that cannot be read to its end ends there, and `problem` says why. */
function entriesIn(lines: AsyncIterable<readonly Line[]>, report: Reporting) {
  let problem: string | undefined
  async function* entries(): AsyncGenerator<readonly Entry[]> {
    try {
      for await (const batch of lines) {
        for (const line of batch) if ('bad' in line) report.note(line.bad, line.given)
        yield batch.filter(line => !('bad' in line)) as Entry[]
      }
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      problem = error.message
    }
  }
  return { entries: entries(), problem: () => problem }
}

const rowsIn = ({ added, existing, erased }: Imported, { invalid }: Reporting): number =>
  added + existing + erased + invalid

async function tell(imported: Imported, report: Reporting, { json, dryRun, announce }: ImportOptions): Promise<void> {
  const { added, existing, erased } = imported
  const { invalid, lines } = report
  if (json) {
    await print([`${JSON.stringify({ added, existing, invalid, erased, lines, more: invalid - lines.length })}\n`])
  } else {
    await print([
      `${number(added)} ${dryRun ? 'would be added' : 'added'}, ${number(existing)} on the list before,` +
        ` ${number(erased)} erased before, ${number(invalid)} not valid.\n`,
      announce && !dryRun && added > 0 ? 'The running service announces them.\n' : '',
    ])
  }
  if (invalid === 0) return
  const shown = json ? [] : lines.slice(0, SHOWN).map(({ line, reason }) => `line ${line}: ${reason}`)
  const more = invalid - shown.length
  if (shown.length > 0 && more > 0) shown.push(`and ${number(more)} more; --report writes all of them to a file`)
  fail(`${counted(invalid, 'line is', 'lines are')} not valid${shown.length === 0 ? '.' : ':'}`, shown)
}

/** Bad lines that are kept for the report; the file of `--report` has all of them. */
const KEPT = 1_000

type Reporting = ReturnType<typeof reporting>

/**
 * Collects bad lines. With a file, all of them are written there with the names and addresses, readable by this user alone.
 *
 * @throws {OperatorError} when the file exists already or cannot be made.
 */
function reporting(file: string | undefined) {
  const descriptor = file === undefined ? undefined : created(file)
  const write = (...fields: readonly string[]) => {
    if (descriptor !== undefined) writeSync(descriptor, `${fields.map(csvField).join(',')}\r\n`)
  }
  write('line', 'reason', 'name', 'email')
  let invalid = 0
  const lines: BadLine[] = []
  return {
    /** How many lines are bad. */
    get invalid() {
      return invalid
    },
    /** The first of them. */
    lines: lines as readonly BadLine[],
    note(bad: BadLine, { name, email }: Given): void {
      invalid++
      if (lines.length < KEPT) lines.push(bad)
      write(String(bad.line), bad.reason, written(name), written(email))
    },
    close(): void {
      if (descriptor !== undefined) closeSync(descriptor)
    },
  }
}

function created(file: string): number {
  try {
    return openSync(file, 'wx', 0o600)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new OperatorError(`${file} exists already. A report never overwrites a file.`)
    throw new OperatorError(`${file} cannot be written: ${message}`)
  }
}

/** Of what a file has in the place of a name. */
const written = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)

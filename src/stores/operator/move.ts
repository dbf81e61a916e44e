import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { type Table, tableNames, tables } from '../rows.ts'
import type { Sql } from '../sql.ts'

/** A value for each table. */
const forTables = <T>(make: (table: Table) => T) =>
  Object.fromEntries(tableNames.map(table => [table, make(table)])) as Record<Table, T>

export type Row = { readonly number: number } & Readonly<Record<string, string | number | null>>

/** A store that a move may begin or end with. */
export interface Movable {
  /** For messages: without user and password. */
  readonly name: string
  /** The file that it is now; null: there is none. */
  file(): string | null
  /** Opens a snapshot of it. */
  openSource(): Promise<Source>
  openTarget(): Promise<Target>
  /** What a failure of either means. */
  cannotUse(error: unknown): OperatorError
}

interface End {
  readonly name: string
  /** The same for two names of one database. */
  readonly identity: string
  /** Up to `most` rows with numbers above `after`, in order; of a target, once it is finished. */
  read(table: Table, after: number, most: number): Promise<readonly Row[]>
  close(): Promise<void>
}

export interface Source extends End {
  /** How many rows there are, and the greatest number that any row ever had, even if it was deleted; 0 if there was none. */
  extent(table: Table): Promise<Extent>
  /** Whether anything was changed since it was opened. Call it last: it ends the snapshot. */
  changed(): Promise<boolean>
}

export interface Extent {
  readonly rows: number
  readonly last: number
}

/** Until `commit` nobody else sees the rows, and without `commit` nothing is left of them. */
export interface Target extends End {
  /**
   * Locks everybody else out until it is closed.
   *
   * @throws {OperatorError} when it is in use or not empty; nothing was changed then.
   */
  begin(): Promise<void>
  write(table: Table, rows: readonly Row[]): Promise<void>
  /** Ends the writing. Rows that are added later get numbers above these. */
  finish(last: Readonly<Record<Table, number>>): Promise<void>
  /**
   * Makes the copy visible in one step. False: the answer was lost, so it is unknown whether that took place.
   *
   * @throws {OperatorError} when it certainly did not take place.
   */
  commit(): Promise<boolean>
}

export const notEmpty = (name: string): OperatorError =>
  new OperatorError(`${name} is not empty. Give --to a database that has no tables yet, or no rows in them.`)

export interface MoveOptions {
  /** Ends the move between two batches. */
  readonly signal: AbortSignal
  readonly progress: (progress: Progress) => void
  /** Rows in one statement, and in memory at once. */
  readonly batch?: number | undefined
}

export interface Progress {
  readonly phase: 'copying' | 'verifying'
  /** Rows. */
  readonly done: number
  readonly total: number
}

/** How a move ended. Unless it is `moved` or `unknown`, the target is as it was. */
export type Moved =
  /** Both sides are equal. */
  | { readonly is: 'moved'; readonly copied: number; readonly sums: readonly Sums[] }
  /** The signal was aborted. */
  | { readonly is: 'stopped' }
  /** The source was changed meanwhile, so the copy would be incomplete. */
  | { readonly is: 'overtaken' }
  /** The target did not store what was written to it. */
  | { readonly is: 'different'; readonly sums: readonly Sums[] }
  /** Everything was copied and compared, but the answer to the commit was lost: it may or may not have taken place. */
  | { readonly is: 'unknown' }

/** A table on both sides. */
export interface Sums {
  readonly table: Table
  readonly source: Sum
  readonly target: Sum
}

interface Sum {
  readonly rows: number
  /** SHA-256 of the rows as JSON, in the order of their numbers, batch by batch. */
  readonly checksum: string
}

/**
 * Copies everything from one store to an empty one, compares both, and only then makes the copy visible: all of it or
 * nothing. No service may use either of them meanwhile.
 *
 * @throws {OperatorError} when one of them cannot be used; nothing was copied then.
 */
export async function move(from: Movable, to: Movable, options: MoveOptions): Promise<Moved> {
  try {
    return await moveStores(from, to, options)
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    throw new OperatorError(`${error.message.replace(/[^.!?;]$/, '$&.')} Nothing was copied.`)
  }
}

async function moveStores(from: Movable, to: Movable, options: MoveOptions): Promise<Moved> {
  // Looked at first, since a file that is opened twice would be reported as in use.
  const file = from.file()
  if (file !== null && file === to.file()) throw itself(to)
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      if (source.identity === target.identity) throw itself(to)
      return await moveRows(source, target, options)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

const itself = ({ name }: Movable): OperatorError =>
  new OperatorError(`DATABASE_URL and --to are the same database, ${name}. There is nothing to move.`)

/** Both sides, whose failures say what they mean. */
export const openSource = async (from: Movable): Promise<Source> => naming(await from.openSource(), from)
export const openTarget = async (to: Movable): Promise<Target> => naming(await to.openTarget(), to)

function naming<Side extends object>(side: Side, { cannotUse }: Movable): Side {
  const named = Object.entries(side).map(([name, method]) => {
    if (typeof method !== 'function') return [name, method]
    const use = async (...all: unknown[]) => {
      try {
        return await method(...all)
      } catch (error) {
        throw error instanceof OperatorError ? error : cannotUse(error)
      }
    }
    return [name, use]
  })
  return Object.fromEntries(named)
}

/** A leased row that is taken over is in doubt. */
const DOUBT = 'case when doubt or token is not null then 1 else 0 end as doubt'

export function readRows(sql: Sql, table: Table, after: number, most: number): Promise<readonly Row[]> {
  const columns = Object.keys(tables[table]).map(column => (column === 'doubt' ? DOUBT : column))
  const text = `select ${columns.join(', ')} from ${table} where number > $1 order by number limit $2`
  return sql.all<Row>(text, [after, most])
}

/** The move between two open stores. */
export async function moveRows(source: Source, target: Target, options: MoveOptions): Promise<Moved> {
  const { signal, progress, batch = 1_000 } = options
  try {
    await target.begin()
    const last = forTables(() => 0)
    let total = 0
    for (const table of tableNames) {
      const extent = await source.extent(table)
      last[table] = extent.last
      total += extent.rows
    }

    /** Reports progress. It is called for every batch, so this is where a move is stopped. */
    const telling = (phase: Progress['phase']) => {
      let done = 0
      return (rows: number) => {
        signal.throwIfAborted()
        done += rows
        progress({ phase, done: Math.min(done, total), total })
      }
    }

    const tellCopied = telling('copying')
    const given = forTables(summing)
    for (const table of tableNames) {
      tellCopied(0)
      for await (const rows of batches(source, table, batch, rows => target.write(table, rows))) {
        given[table].add(rows)
        tellCopied(rows.length)
      }
    }
    await target.finish(last)

    const tellVerified = telling('verifying')
    const kept = forTables(summing)
    for (const table of tableNames) {
      for await (const rows of batches(target, table, batch)) {
        kept[table].add(rows)
        tellVerified(rows.length)
      }
    }
    const sums = tableNames.map(table => ({ table, source: given[table].sum(), target: kept[table].sum() }))
    if (await source.changed()) return { is: 'overtaken' }
    const equal = sums.every(({ source, target }) => source.rows === target.rows && source.checksum === target.checksum)
    if (!equal) return { is: 'different', sums }
    signal.throwIfAborted()
    if (!(await target.commit())) return { is: 'unknown' }
    return { is: 'moved', copied: sums.reduce((copied, { source }) => copied + source.rows, 0), sums }
  } catch (error) {
    if (signal.aborted && error === signal.reason) return { is: 'stopped' }
    throw error
  }
}

/** All rows of a table. The next batch is read while `use` handles this one. */
async function* batches(
  side: Pick<Source, 'read'>,
  table: Table,
  most: number,
  use: (rows: readonly Row[]) => Promise<void> = async () => {},
): AsyncGenerator<readonly Row[]> {
  for (let rows = await side.read(table, Number.MIN_SAFE_INTEGER, most); rows.length > 0; ) {
    // A file blocks the thread, so a signal that stops the move goes first.
    await turn()
    const [next] = await Promise.all([side.read(table, rows.at(-1)!.number, most), use(rows)])
    yield rows
    rows = next
  }
}

function summing() {
  const hash = createHash('sha256')
  let count = 0
  return {
    add(rows: readonly Row[]): void {
      hash.update(JSON.stringify(rows))
      count += rows.length
    },
    sum: (): Sum => ({ rows: count, checksum: hash.digest('hex') }),
  }
}

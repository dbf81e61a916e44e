import { createHash } from 'node:crypto'
import { OperatorError } from '../waitlist/ports/log.ts'
import { type StoreLocation, storeName } from './location.ts'
import { FIRST, forTables, type Row, type Source, type Table, type Target, tableNames } from './rows.ts'

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
  /** SHA-256 of a line of JSON for each row, in the order of their numbers. */
  readonly checksum: string
}

/**
 * Copies everything from one store to an empty one, compares both, and only then makes the copy visible: all of it or
 * nothing. No service may use either of them meanwhile.
 *
 * @throws {OperatorError} when one of them cannot be used; nothing was copied then.
 */
export async function move(from: StoreLocation, to: StoreLocation, options: MoveOptions): Promise<Moved> {
  try {
    return await moveStores(from, to, options)
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    throw new OperatorError(`${error.message.replace(/[^.!?;]$/, '$&.')} Nothing was copied.`)
  }
}

async function moveStores(from: StoreLocation, to: StoreLocation, options: MoveOptions): Promise<Moved> {
  await refuseOneFile(from, to)
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

export const openSource = async (from: StoreLocation): Promise<Source> =>
  from.kind === 'sqlite'
    ? (await import('./sqlite/copy.ts')).sqliteSource(from.path)
    : (await import('./postgres/copy.ts')).postgresSource(from.url)

export const openTarget = async (to: StoreLocation): Promise<Target> =>
  to.kind === 'sqlite'
    ? (await import('./sqlite/copy.ts')).sqliteTarget(to.path)
    : (await import('./postgres/copy.ts')).postgresTarget(to.url)

const itself = (place: StoreLocation): OperatorError =>
  new OperatorError(`DATABASE_URL and --to are the same database, ${storeName(place)}. There is nothing to move.`)

/** Checked first, since a file that is opened twice would be reported as in use. */
async function refuseOneFile(from: StoreLocation, to: StoreLocation): Promise<void> {
  if (from.kind !== 'sqlite' || to.kind !== 'sqlite') return
  const { sameFile } = await import('./sqlite/copy.ts')
  if (sameFile(from.path, to.path)) throw itself(to)
}

/** The move between two open stores. */
export async function moveRows(source: Source, target: Target, options: MoveOptions): Promise<Moved> {
  const { signal, progress, batch = 1_000 } = options
  try {
    await target.begin()
    const counts: number[] = []
    for (const table of tableNames) counts.push(await source.count(table))
    const total = counts.reduce((sum, count) => sum + count, 0)

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
    const last = forTables(() => 0)
    const given = forTables(summing)
    for (const table of tableNames) {
      last[table] = await source.last(table)
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
  for (let rows = await side.read(table, FIRST, most); rows.length > 0; ) {
    const [next] = await Promise.all([side.read(table, rows.at(-1)![0], most), use(rows)])
    yield rows
    rows = next
  }
}

function summing() {
  const hash = createHash('sha256')
  let count = 0
  return {
    add(rows: readonly Row[]): void {
      hash.update(rows.map(row => `${JSON.stringify(row)}\n`).join(''))
      count += rows.length
    },
    sum: (): Sum => ({ rows: count, checksum: hash.digest('hex') }),
  }
}

import { createHash } from 'node:crypto'
import { CannotOpen } from '../waitlist/ports.ts'
import { type StorePlace, storeName } from './place.ts'
import { FIRST, type Row, type Source, type Table, type Target, tableNames } from './rows.ts'

export interface MoveOptions {
  /** Ends the move between two batches. */
  readonly signal: AbortSignal
  readonly progress: (progress: Progress) => void
  /** Rows in one transaction, and in memory at once. */
  readonly batch?: number
}

export interface Progress {
  readonly phase: 'comparing' | 'copying' | 'verifying'
  /** Rows. */
  readonly done: number
  readonly total: number
}

/** What became of a move. */
export type Moved =
  /** Both sides are equal. `copied`: rows that were not there before. */
  | { readonly is: 'moved'; readonly copied: number; readonly sums: readonly Sums[] }
  /** Nothing was written: the target has this row, and the source another one or none. */
  | { readonly is: 'refused'; readonly table: Table; readonly key: number }
  /** Stopped by the signal. What was copied stays and is marked, and the next move goes on there. */
  | { readonly is: 'stopped' }
  /** Somebody used the source meanwhile, so the copy may lack something. */
  | { readonly is: 'overtaken' }
  /** Both sides differ: somebody used the target meanwhile, or it does not keep what it is given. */
  | { readonly is: 'different'; readonly sums: readonly Sums[] }

/** A table on both sides. */
export interface Sums {
  readonly table: Table
  readonly source: Sum
  readonly target: Sum
}

interface Sum {
  readonly rows: number
  /** SHA-256 over a line of JSON for each row, in the order of the keys. */
  readonly checksum: string
}

/**
 * Copies all that one store keeps to another one, and compares both. What an earlier move has copied stays and is not
 * copied again. No service may use either of them meanwhile.
 *
 * @throws {CannotOpen} when one of them cannot be used.
 */
export async function move(from: StorePlace, to: StorePlace, options: MoveOptions): Promise<Moved> {
  let begun = false
  try {
    return await moveStores(from, to, options, () => {
      begun = true
    })
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error
    const sentence = error.message.replace(/[^.!?]$/, '$&.')
    const after = begun ? 'Run the same command again: it goes on where this one ended.' : 'Nothing was copied.'
    throw new CannotOpen(`${sentence} ${after}`)
  }
}

/** `begin` is called before anything is written. */
async function moveStores(from: StorePlace, to: StorePlace, options: MoveOptions, begin: () => void): Promise<Moved> {
  await refuseOneFile(from, to)
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      if (source.identity === target.identity) throw itself(to)
      const told: Target = {
        ...target,
        begin() {
          begin()
          return target.begin()
        },
      }
      return await moveRows(source, told, options)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

export const openSource = async (from: StorePlace): Promise<Source> =>
  from.kind === 'sqlite'
    ? (await import('./sqlite/rows.ts')).sqliteSource(from.path)
    : (await import('./postgres/rows.ts')).postgresSource(from.url)

export const openTarget = async (to: StorePlace): Promise<Target> =>
  to.kind === 'sqlite'
    ? (await import('./sqlite/rows.ts')).sqliteTarget(to.path)
    : (await import('./postgres/rows.ts')).postgresTarget(to.url)

const itself = (place: StorePlace): CannotOpen =>
  new CannotOpen(`DATABASE_URL and --to are the same database, ${storeName(place)}. There is nothing to move.`)

/** Opened twice, a file would be said to be in use. */
async function refuseOneFile(from: StorePlace, to: StorePlace): Promise<void> {
  if (from.kind !== 'sqlite' || to.kind !== 'sqlite') return
  const { sameFile } = await import('./sqlite/rows.ts')
  if (sameFile(from.path, to.path)) throw itself(to)
}

/** The move between two stores that are open. */
export async function moveRows(source: Source, target: Target, options: MoveOptions): Promise<Moved> {
  const { signal, progress, batch = 2_000 } = options
  const counts: number[] = []
  for (const table of tableNames) counts.push(await source.count(table))
  const all = counts.reduce((sum, count) => sum + count, 0)

  /** Tells of rows that are done. Every batch comes by here, so this is where a move is stopped. */
  const telling = (phase: Progress['phase'], total: number) => {
    let done = 0
    return (rows: number) => {
      signal.throwIfAborted()
      done += rows
      progress({ phase, done: Math.min(done, total), total })
    }
  }

  try {
    const there = new Map<Table, { readonly last: number; readonly rows: number }>()
    const tellCompared = telling('comparing', all)
    for (const table of tableNames) {
      const found = await foundIn(source, target, table, batch, tellCompared)
      if ('differs' in found) return { is: 'refused', table, key: found.differs }
      there.set(table, found)
    }

    let copied = 0
    const tellCopied = telling('copying', all)
    for (const table of tableNames) {
      const { last, rows } = there.get(table)!
      tellCopied(rows)
      copied += await copy(source, target, { table, last, batch }, tellCopied)
    }

    const sums: Sums[] = []
    const tellVerified = telling('verifying', 2 * all)
    for (const table of tableNames) {
      const sum = (side: Pick<Source, 'read'>) => sumOf(side, table, batch, tellVerified)
      const [ofSource, ofTarget] = await Promise.all([sum(source), sum(target)])
      sums.push({ table, source: ofSource, target: ofTarget })
    }
    if (await source.changed()) return { is: 'overtaken' }
    const equal = sums.every(({ source, target }) => source.rows === target.rows && source.checksum === target.checksum)
    if (!equal) return { is: 'different', sums }
    await target.end()
    return { is: 'moved', copied, sums }
  } catch (error) {
    if (signal.aborted && error === signal.reason) return { is: 'stopped' }
    throw error
  }
}

const keyOf = (row: Row): number => row[0]
const lineOf = (row: Row): string => `${JSON.stringify(row)}\n`

/**
 * What an earlier move has left in a table: the first rows of the source, or nothing. Comparing them needs no mark in the
 * target that could be wrong.
 */
async function foundIn(
  source: Source,
  target: Target,
  table: Table,
  batch: number,
  compared: (rows: number) => void,
): Promise<{ readonly last: number; readonly rows: number } | { readonly differs: number }> {
  let last = FIRST
  for (let rows = 0; ; ) {
    const found = await target.read(table, last, batch)
    if (found.length === 0) return { last, rows }
    const expected = await source.read(table, last, found.length)
    const other = found.find((row, i) => expected[i] === undefined || lineOf(row) !== lineOf(expected[i]))
    if (other !== undefined) return { differs: keyOf(other) }
    last = keyOf(found.at(-1)!)
    rows += found.length
    compared(found.length)
  }
}

/** The next batch is read while one is written. The target is marked before the first one. */
async function copy(
  source: Source,
  target: Target,
  { table, last, batch }: { readonly table: Table; readonly last: number; readonly batch: number },
  told: (rows: number) => void,
): Promise<number> {
  let copied = 0
  for (let rows = await source.read(table, last, batch); rows.length > 0; ) {
    if (copied === 0) await target.begin()
    const [, next] = await Promise.all([target.write(table, rows), source.read(table, keyOf(rows.at(-1)!), batch)])
    copied += rows.length
    told(rows.length)
    rows = next
  }
  return copied
}

async function sumOf(
  side: Pick<Source, 'read'>,
  table: Table,
  batch: number,
  told: (rows: number) => void,
): Promise<Sum> {
  const hash = createHash('sha256')
  let rows = 0
  for (let last = FIRST; ; ) {
    const read = await side.read(table, last, batch)
    if (read.length === 0) return { rows, checksum: hash.digest('hex') }
    hash.update(read.map(lineOf).join(''))
    rows += read.length
    last = keyOf(read.at(-1)!)
    told(read.length)
  }
}

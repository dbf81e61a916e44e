import { setTimeout as wait } from 'node:timers/promises'
import { OperatorError } from '../waitlist/ports/log.ts'

/**
 * The seam between what is asked of a store beside signups and deliveries, and the two engines: one SQL text for both, with
 * the fragments of a `Dialect` where they differ.
 */
export interface Sql {
  readonly dialect: Dialect
  /**
   * Runs one statement with the parameters `$1`, `$2` … Numbers are returned as numbers, times in milliseconds since 1970,
   * JSON as text; what is true, as 1 or true. Outside a transaction the statement commits by itself.
   */
  all<Row>(text: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Adds very many rows with the numbers that they have. */
  insert(
    table: string,
    columns: Columns,
    rows: readonly Readonly<Record<string, string | number | null>>[],
  ): Promise<void>
  /**
   * Changes that are committed together, and synced. On a server it is tried again after a temporary failure; `again` then
   * says that an earlier try may have taken effect.
   */
  transaction<T>(use: (sql: Sql, again: boolean) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** Reads that see one moment. `patience`: milliseconds that a server has for each statement. */
  snapshot<T>(use: (sql: Sql) => Promise<T>, patience?: number): Promise<T>
}

export interface TransactionOptions {
  /** Held from the beginning, so that nobody else decides on what this transaction cannot see yet. */
  readonly lock?: Lock
  /** Whether it gives way to signups that lock the same rows in another order. */
  readonly yields?: boolean
}

/** Imports share the lock while they decide about a batch, and a removal has it alone. A file has one writer anyway. */
export type Lock = 'erasures' | 'erasures, shared'

/** Lists are JSON. */
export type Value = string | number | boolean | Date | null

/** What a value is, in a JSON text. Times are in milliseconds since 1970 there, and booleans 0 or 1. */
export type Kind = 'whole' | 'text' | 'json' | 'uuid' | 'time' | 'bit'

export type Columns = Readonly<Record<string, Kind>>

/** How an engine says it. Arguments are SQL. */
export interface Dialect {
  /** When the transaction or statement began. */
  readonly now: string
  /** So many milliseconds after a time. */
  after(time: string, milliseconds: string): string
  /** The beginning of the hour of a time. */
  hour(time: string): string
  /** The first minute, since 1970, of the span of so many that a time lies in. */
  spanOf(time: string, minutes: number): string
  /** The later of two times. */
  later(one: string, other: string): string
  /** One text is a part of the other. */
  contains(text: string, part: string): string
  /** The domain of an address. */
  domain(email: string): string
  /** A JSON text, of which `->>` can take a part. */
  json(text: string): string
  /** A value is among those that a query returns. */
  among(value: string, query: string): string
  /** A query for the elements of a parameter that is a JSON array. The column is `value`. */
  elements(parameter: string, kind: 'whole' | 'text'): string
  /** A parameter that is a JSON array of objects, as a table with these columns, and `ord` for their order. */
  table(parameter: string, columns: Columns): string
  /** Ends a query for rows that are to be changed: others wait. */
  readonly forUpdate: string
  /** The number of a contact to insert, in this order; null: the table gives it. */
  readonly contactNumber: ((order: string) => string) | null
  /** The same for rows that nobody else is changing. */
  readonly unlocked: string
  /** Ends a subquery that is to be computed as it is written. */
  readonly fenced: string
}

/** A store as its operator uses it. All of it works while services use the store, unless it says otherwise. */
export interface Engine {
  /** @throws {OperatorError} when there is no such store or it is not ours. */
  open(how: 'reading' | 'writing'): Promise<Opened>
  /** Null: the first start has yet to make the tables. */
  openIfMade(): Promise<Opened | null>
  /** The same as `open`, but a file that is missing is made, and `made` called with its name. `dryRun`: in memory. */
  openOrMake(dryRun: boolean, made: (store: string) => void): Promise<Opened>
  /** What a failure while it was open means. */
  cannotUse(error: unknown): OperatorError
  /** Throws when the room that is left is for those who sign up. */
  requireRoom(): void
  /** Takes what was deleted out of the log, too. */
  emptyLog(): Promise<void>
  readonly pace: Pace
}

export interface Opened {
  readonly sql: Sql
  close(): Promise<void>
}

/** How a change of many goes, for which signups wait in a file: it has one writer at a time. */
export interface Pace {
  /** Rows of a step: at least, unless fewer are left, since a commit alone may take as long as a step should; at most. */
  readonly least: number
  readonly most: number
  /** The part of the usual rests between the steps of an import. A million entries within a minute leave no more. */
  readonly rests: number
}

/** Opens a store for as long as `use` takes. */
export async function lend<T>(
  engine: Engine,
  how: 'reading' | 'writing' | Opened,
  use: (sql: Sql) => Promise<T>,
): Promise<T> {
  const { sql, close } = typeof how === 'string' ? await engine.open(how) : how
  try {
    return await use(sql)
  } catch (error) {
    throw error instanceof OperatorError ? error : engine.cannotUse(error)
  } finally {
    await close()
  }
}

/** A transaction that is not tried again if it may have taken effect. `then`: what the operator does next. */
export const once = <T>(
  sql: Sql,
  then: string,
  use: (sql: Sql) => Promise<T>,
  options?: TransactionOptions,
): Promise<T> =>
  sql.transaction((inside, again) => {
    if (again) throw new OperatorError(`The connection was lost before the answer came. ${then}`)
    return use(inside)
  }, options)

/** Milliseconds that one step should take, since it holds locks and the disk, for which signups wait. */
const STEP = 20
/** The rest after a step, as a multiple of the time that it took: signups get four fifths of the time. */
const REST = 4
/** Rows of the first step, and of any. */
const FIRST = 100
const MOST = 5_000

/** Called after each step. `done`: those that were changed so far. */
export type Progress = (done: number) => void

/**
 * Changes any number of rows while signups go on: in short steps with rests in between. `step` changes at most so many
 * rows, commits, and returns whether more are left.
 */
export async function inSteps(
  step: (most: number) => boolean | Promise<boolean>,
  { clock = () => performance.now(), rest = wait as (milliseconds: number) => Promise<unknown> } = {},
): Promise<void> {
  for (let most = FIRST; ; ) {
    const began = clock()
    if (!(await step(most))) return
    const took = clock() - began
    await rest(Math.max(STEP, took) * REST)
    // Half as many or twice as many, since one step says little about the next.
    most = Math.round(Math.min(2 * most, Math.max(most / 2, (most * STEP) / took)))
    most = Math.min(MOST, Math.max(1, most))
  }
}

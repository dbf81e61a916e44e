/** A value in SQL: JSON is text, times are milliseconds since 1970, flags 0 or 1. A list goes with `dialect.among`. */
export type Value = string | number | null | readonly (string | number)[]

/** A new row: a value for each column. All rows of one statement have the same columns in the same order. */
export type Row = Readonly<Record<string, string | number | null>>

/** One transaction. Statements have the parameters `$1`, `$2` … and are written once for both engines. */
export interface Tx {
  readonly dialect: Dialect
  /** Milliseconds since 1970, by the store's clock: on PostgreSQL the server's, which all instances share. */
  readonly now: number
  /** An earlier try of this transaction may have taken effect, since the answer to its commit was lost. */
  readonly again: boolean
  all<Result>(text: string, values?: readonly Value[]): Promise<readonly Result[]>
  /** Returns how many rows were changed. */
  run(text: string, values?: readonly Value[]): Promise<number>
  /** Adds rows in their order. `ending`: such as `on conflict do nothing`. */
  insert(table: string, rows: readonly Row[], ending?: string): Promise<void>
  /**
   * Adds rows of a table with numbers, in their order, unless they are there already. Returns the numbers of those that were
   * added, by the values of a unique column. `contended`: others add the same values at once, so PostgreSQL goes by the
   * order of that column.
   */
  insertNew(
    table: string,
    rows: readonly Row[],
    column: string,
    options?: { readonly contended?: boolean },
  ): Promise<ReadonlyMap<string, number>>
}

/** What the engines say differently. Arguments are SQL. */
export interface Dialect {
  /** Whether a value is in a list that is a parameter. */
  among(value: string, parameter: string): string
  /** A parameter that is a JSON array of objects, as a table with these columns. */
  rows(parameter: string, columns: Readonly<Record<string, 'text' | 'bigint'>>): string
  /** Ends a query for rows that are about to be changed: others wait for them. */
  readonly forUpdate: string
  /** The same, without rows of `table` that others have locked. */
  skipLocked(table: string): string
  /** Lets the numbers of new rows go on after those that were loaded; null: they do so anyway. */
  nextNumber(table: string): string | null
}

/** A database of either engine. */
export interface Database {
  /**
   * Runs a transaction, and resolves when it, and all that it has read, is synced to disk. After a temporary failure it is
   * tried again for a short while, unless it was committed and may not be repeated; `use` must have no other effect.
   *
   * @throws {StoreUnavailable} when the failure lasts. Nothing was promised then.
   */
  transaction<T>(use: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** Reads that see one moment, and for which nobody waits, however long they take. */
  read<T>(use: (tx: Tx) => Promise<T>): Promise<T>
  /** For messages: without user and password. */
  readonly name: string
  /** Resolves if what is written can no longer be trusted: the process must then end at once. */
  readonly failure: Promise<Error>
  /** Throws when there is no room for more than ends what was begun. */
  requireRoom(): void
  /** Empties the write-ahead log, which still holds what was deleted. */
  truncateWal(): Promise<void>
  close(): Promise<void>
}

interface TransactionOptions {
  /** False: not tried again if the answer to the commit was lost. Default: true. */
  readonly repeatable?: boolean
}

/** The store is overloaded, out of space, busy or gone. Visitors are told "temporarily unavailable". */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

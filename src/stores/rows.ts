import { OperatorError } from '../waitlist/ports/log.ts'

/**
 * Everything a store keeps, as rows that are the same for both engines. A move copies and compares these.
 *
 * `time` is in milliseconds since 1970. `doubt` is 1 or 0; a leased row is in doubt, as it will be for the process that
 * takes it over when the lease ends. The lease itself belongs to a process and is not part of the row.
 */
export type Kind = 'whole' | 'text' | 'json' | 'uuid' | 'time' | 'doubt'

/** In the order of their references. The first column is the key; rows are read in its order. */
export const tables = {
  contact: {
    number: 'whole',
    id: 'uuid',
    name: 'text',
    email: 'text',
    email_key: 'text',
    state: 'text',
    created_at: 'time',
    provider_id: 'text',
    event_name: 'text',
    event_at: 'time',
    source: 'json',
    held_for: 'text',
    mailbox: 'text',
  },
  delivery: {
    number: 'whole',
    contact: 'whole',
    destination: 'text',
    state: 'text',
    attempts: 'whole',
    doubt: 'doubt',
    due_at: 'time',
    why: 'text',
    settled_at: 'time',
  },
  erased: {
    number: 'whole',
    hash: 'text',
    erased_at: 'time',
  },
  secret: {
    number: 'whole',
    name: 'text',
    value: 'text',
  },
} as const satisfies Record<string, Readonly<Record<string, Kind>>>

export type Table = keyof typeof tables
export const tableNames = Object.keys(tables) as readonly Table[]
export const columnsOf = (table: Table) => Object.entries(tables[table]) as readonly (readonly [string, Kind])[]

/** A value for each table. */
export const forTables = <T>(make: (table: Table) => T) =>
  Object.fromEntries(tableNames.map(table => [table, make(table)])) as Record<Table, T>

/** The values in the order of the columns. The first is the row's number. */
export type Row = readonly [number: number, ...(string | number | null)[]]

/** Below every number. */
export const FIRST = Number.MIN_SAFE_INTEGER

/** A store to move from, as it was when it was opened. Every method throws `OperatorError` if it cannot be used. */
export interface Source {
  /** For messages: without user and password. */
  readonly name: string
  /** The same for two names of one database. */
  readonly identity: string
  count(table: Table): Promise<number>
  /** Up to `most` rows with numbers above `after`, in order. */
  read(table: Table, after: number, most: number): Promise<readonly Row[]>
  /** The greatest number that any row ever had, even if it was deleted; 0 if there was none. */
  last(table: Table): Promise<number>
  /** Whether anything was changed since it was opened. Call it last: it ends the snapshot. */
  changed(): Promise<boolean>
  close(): Promise<void>
}

/** A store to move to. Until `commit` nobody else sees the rows, and without `commit` nothing is left of them. */
export interface Target extends Pick<Source, 'name' | 'identity'> {
  /**
   * Locks everybody else out until it is closed.
   *
   * @throws {OperatorError} when it is in use or not empty; nothing was changed then.
   */
  begin(): Promise<void>
  write(table: Table, rows: readonly Row[]): Promise<void>
  /** Ends the writing. Rows that are added later get numbers above these. */
  finish(last: Readonly<Record<Table, number>>): Promise<void>
  /** Reads the written rows, after `finish`. */
  read: Source['read']
  /**
   * Makes the copy visible in one step. False: the answer was lost, so it is unknown whether that took place.
   *
   * @throws {OperatorError} when it certainly did not take place.
   */
  commit(): Promise<boolean>
  close(): Promise<void>
}

export const notEmpty = (name: string): OperatorError =>
  new OperatorError(`${name} is not empty. Give --to a database that has no tables yet, or no rows in them.`)

/** Adds the store's name to what goes wrong in `use`. */
export const using =
  (name: string, reasonOf: (error: unknown) => string = error => (error as Error).message) =>
  async <T>(what: () => T | Promise<T>): Promise<T> => {
    try {
      return await what()
    } catch (error) {
      if (error instanceof OperatorError) throw error
      throw new OperatorError(`${name} cannot be used: ${reasonOf(error)}`)
    }
  }

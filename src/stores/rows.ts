import { CannotOpen } from '../waitlist/ports.ts'

/**
 * All that a store keeps, as rows that look the same whichever engine keeps them. A move copies and compares these.
 *
 * `time` is in milliseconds since 1970. `doubt` is 1 or 0; a row that is leased is in doubt, as it will be for whoever
 * takes it over when the lease has ended. The lease itself belongs to a process and is no part of the row.
 */
export type Kind = 'whole' | 'text' | 'uuid' | 'time' | 'doubt'

/** What is referred to comes before what refers to it. The first column is the key; rows are read in its order. */
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
  },
  event: { contact: 'whole', name: 'text', created_at: 'time' },
  registration: {
    contact: 'whole',
    provider: 'text',
    attempts: 'whole',
    doubt: 'doubt',
    due_at: 'time',
    why: 'text',
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
} as const satisfies Record<string, Readonly<Record<string, Kind>>>

export type Table = keyof typeof tables
export const tableNames = Object.keys(tables) as readonly Table[]
export const columnsOf = (table: Table) => Object.entries(tables[table]) as readonly (readonly [string, Kind])[]

/** The values in the order of the columns. */
export type Row = readonly [key: number, ...(string | number | null)[]]

/** Below every key. */
export const FIRST = Number.MIN_SAFE_INTEGER

/** Every method throws `CannotOpen` when the store cannot be used. */
export interface Source {
  /** For messages: without user and password. */
  readonly name: string
  /** Equal for two names of one database. */
  readonly identity: string
  count(table: Table): Promise<number>
  /** Up to `most` rows whose key is greater than `after`, by their keys. */
  read(table: Table, after: number, most: number): Promise<readonly Row[]>
  /** Whether somebody has changed anything since it was opened. To be asked last: what is read later is newer. */
  changed(): Promise<boolean>
  close(): Promise<void>
}

export interface Target extends Pick<Source, 'name' | 'identity' | 'read' | 'close'> {
  /** Marks it, until `end`, as one that no service may use; also when it is marked already. */
  begin(): Promise<void>
  /** Adds all of them in one transaction. What joins later gets greater numbers. */
  write(table: Table, rows: readonly Row[]): Promise<void>
  /** Takes the mark away, if there is one. */
  end(): Promise<void>
}

/** For whoever would use a store that is marked. */
export const notEnded = (name: string): CannotOpen =>
  new CannotOpen(
    `A move into ${name} has not ended. Run the same \`waitlist move\` again, or begin with an empty database.`,
  )

/** What goes wrong within is told of the store with this name. */
export const using =
  (name: string) =>
  async <T>(what: () => T | Promise<T>): Promise<T> => {
    try {
      return await what()
    } catch (error) {
      if (error instanceof CannotOpen) throw error
      throw new CannotOpen(`${name} cannot be used: ${(error as Error).message}`)
    }
  }

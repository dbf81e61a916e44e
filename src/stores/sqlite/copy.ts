import { closeSync, existsSync, openSync, realpathSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { storeName } from '../location.ts'
import {
  columnsOf,
  forTables,
  type Kind,
  notEmpty,
  type Row,
  type Source,
  type Table,
  type Target,
  tableNames,
  using,
} from '../rows.ts'
import { publish, requireNoLog } from './publish.ts'
import { holdPlace, openForReading, openSqliteFile, requireReleased, upgrade } from './schema.ts'

/**
 * Opens a file to move from, as the service would: other processes are locked out, and a file of an older release is
 * upgraded.
 *
 * @throws {OperatorError} also when there is no such file.
 */
export async function sqliteSource(given: string): Promise<Source> {
  requireFile(given)
  openForReading(given).close()
  const name = storeName({ kind: 'sqlite', path: given })
  const { use, inTurn } = turns(name)
  return use(() => {
    const { path, database, close } = openSqliteFile({ path: given })
    // The lock keeps services out, but not a replay of deliveries or the sqlite3 shell.
    database.exec('begin')
    const read = reading(database)
    const count = forTables(table => database.prepare(`select count(*) as rows from ${table}`))
    const last = database.prepare('select seq from sqlite_sequence where name = ?')
    // Changes when another connection commits, but not within a transaction.
    const version = database.prepare('pragma data_version')
    const opened = version.get()?.data_version
    return {
      name,
      identity: path,
      count: table => inTurn(() => count[table].get()?.rows as number),
      read: (table, after, most) => inTurn(() => read(table, after, most)),
      last: table => use(() => (last.get(table)?.seq as number | undefined) ?? 0),
      changed: () =>
        use(() => {
          database.exec('commit')
          return version.get()?.data_version !== opened
        }),
      close: async () => close(),
    }
  })
}

/**
 * A file to move to. It is written beside its path, under another name, and renamed at the end. What a killed move leaves
 * is removed by the next one.
 */
export async function sqliteTarget(given: string): Promise<Target> {
  requireFile(given)
  const name = storeName({ kind: 'sqlite', path: given })
  const { use, inTurn } = turns(name)
  return use(() => {
    const { path, close } = holdPlace(given)
    const unfinished = `${path}.unfinished-move`
    let open: DatabaseSync | undefined
    let insert: ReturnType<typeof inserting>
    let read: ReturnType<typeof reading>

    /** Opens the file for the next step, after the step before has closed it. */
    const opened = (readOnly = false) => {
      open?.close()
      open = new DatabaseSync(unfinished, { readOnly })
      return open
    }
    return {
      name,
      identity: path,
      begin: () =>
        use(() => {
          if (existsSync(path)) withEmpty(path, name, () => {})
          else requireNoLog(path)
          rmSync(unfinished, { force: true })
          closeSync(openSync(unfinished, 'wx', 0o600))
          const database = opened()
          // An unfinished file is thrown away, and a finished one is synced as a whole.
          database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -16384')
          upgrade(database, unfinished)
          database.exec('begin')
          insert = inserting(database)
        }),
      write: (table, rows) => inTurn(() => insert(table, rows)),
      finish: last =>
        use(() => {
          for (const table of tableNames) {
            open?.prepare('delete from sqlite_sequence where name = ?').run(table)
            open?.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(table, last[table])
          }
          open?.exec('commit')
          read = reading(opened(true))
        }),
      read: (table, after, most) => inTurn(() => read(table, after, most)),
      commit: () =>
        use(() => {
          open?.close()
          open = undefined
          try {
            if (existsSync(path)) replace(path, name, () => publish(unfinished, path))
            else publish(unfinished, path)
            return true
          } catch (error) {
            if (existsSync(unfinished)) throw error
            // It was renamed, but it is unknown whether that would survive a power cut.
            return false
          }
        }),
      async close() {
        open?.close()
        rmSync(unfinished, { force: true })
        close()
      },
    }
  })
}

/** Whether both paths lead to the same file. */
export const sameFile = (one: string, other: string): boolean =>
  existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other)

function requireFile(path: string): void {
  if (path === ':memory:')
    throw new OperatorError('sqlite::memory: exists in one process only, so nothing can be moved to or from it.')
}

/** Everything here blocks the thread, so the other side and a signal that stops the move go first. */
function turns(name: string) {
  const use = using(name)
  return {
    use,
    inTurn: async <T>(what: () => T): Promise<T> => {
      await turn()
      return use(what)
    },
  }
}

/**
 * Replaces an empty database with another file. Before that it makes sure that nobody else has the database open, and that
 * its log is gone, since SQLite would apply it to the other file.
 */
const replace = (path: string, name: string, put: () => void): void =>
  withEmpty(path, name, database => {
    // Leaving WAL mode fails if anybody else has it open. The lock then makes no journal file.
    database.exec('pragma journal_mode = memory; begin exclusive')
    requireEmpty(database, name)
    put()
  })

function withEmpty(path: string, name: string, use: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(path, { timeout: 5000 })
  try {
    requireReleased(database, path)
    requireEmpty(database, name)
    use(database)
  } finally {
    database.close()
  }
}

function requireEmpty(database: DatabaseSync, name: string): void {
  const made = database.prepare('select 1 from sqlite_schema where name = ?')
  for (const table of tableNames) {
    if (made.get(table) === undefined) continue
    if (database.prepare(`select 1 from ${table} limit 1`).get() !== undefined) throw notEmpty(name)
  }
}

/** The kinds that are not read as they are. */
const values: Partial<Record<Kind, (column: string) => string>> = {
  doubt: column => `(${column} or token is not null)`,
}

function reading(database: DatabaseSync) {
  const statements = forTables(table => {
    const columns = columnsOf(table).map(([column, kind]) => values[kind]?.(column) ?? column)
    const statement = database.prepare(
      `select ${columns.join(', ')} from ${table} where number > ? order by number limit ?`,
    )
    statement.setReturnArrays(true)
    return statement
  })
  return (table: Table, after: number, most: number) => statements[table].all(after, most) as unknown as Row[]
}

function inserting(database: DatabaseSync) {
  const statements = forTables(table => {
    const names = columnsOf(table).map(([column]) => column)
    return database.prepare(`insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`)
  })
  return (table: Table, rows: readonly Row[]) => {
    for (const row of rows) statements[table].run(...row)
  }
}

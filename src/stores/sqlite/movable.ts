import { closeSync, existsSync, openSync, realpathSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { storeName } from '../location.ts'
import { type Movable, notEmpty, readRows, type Source, type Target } from '../operator/move.ts'
import { tableNames, tables } from '../rows.ts'
import type { Sql } from '../sql.ts'
import { publish, requireNoLog } from './backup.ts'
import { holdPlace, openForReading, openSqliteFile, requireKnown, upgrade } from './schema.ts'
import { sqliteSql } from './sql.ts'

/** A file that a move begins or ends with. */
export function sqliteMovable(path: string): Movable {
  const name = storeName({ kind: 'sqlite', path })
  const cannotUse = (error: unknown) => new OperatorError(`${name} cannot be used: ${(error as Error).message}`)
  const open = <End>(end: (path: string, name: string) => End) => {
    if (path === ':memory:')
      throw new OperatorError('sqlite::memory: exists in one process only, so nothing can be moved to or from it.')
    try {
      return end(path, name)
    } catch (error) {
      throw error instanceof OperatorError ? error : cannotUse(error)
    }
  }
  return {
    name,
    file: () => (existsSync(path) ? realpathSync(path) : null),
    openSource: async () => open(sourceAt),
    openTarget: async () => open(targetAt),
    cannotUse,
  }
}

/**
 * Opens a file to move from, as the service would: other processes are locked out, and a file of an older release is
 * upgraded.
 *
 * @throws {OperatorError} also when there is no such file.
 */
function sourceAt(given: string, name: string): Source {
  openForReading(given).close()
  const { path, database, close } = openSqliteFile({ path: given })
  // The lock keeps services out, but not a replay of deliveries or the sqlite3 shell.
  database.exec('begin')
  const sql = sqliteSql(database)
  // Changes when another connection commits, but not within a transaction.
  const version = database.prepare('pragma data_version')
  const opened = version.get()?.data_version
  return {
    name,
    identity: path,
    read: (...which) => readRows(sql, ...which),
    async extent(table) {
      const [extent] = await sql.all<{ rows: number; last: number }>(
        'select count(*) as rows,' +
          ' max(coalesce((select seq from sqlite_sequence where name = $1), 0), coalesce(max(number), 0)) as last' +
          ` from ${table}`,
        [table],
      )
      return extent!
    },
    async changed() {
      database.exec('commit')
      return version.get()?.data_version !== opened
    },
    close: async () => close(),
  }
}

/**
 * A file to move to. It is written beside its path, under another name, and renamed at the end. What a killed move leaves
 * is removed by the next one.
 */
function targetAt(given: string, name: string): Target {
  const { path, close } = holdPlace(given)
  const unfinished = `${path}.unfinished-move`
  let open: DatabaseSync | undefined
  let sql: Sql

  /** Opens the file for the next step, after the step before has closed it. */
  const opened = (readOnly = false) => {
    open?.close()
    open = new DatabaseSync(unfinished, { readOnly })
    return open
  }
  return {
    name,
    identity: path,
    read: (...which) => readRows(sql, ...which),
    write: (table, rows) => sql.insert(table, tables[table], rows),
    async begin() {
      if (existsSync(path)) withEmpty(path, name, () => {})
      else requireNoLog(path)
      rmSync(unfinished, { force: true })
      closeSync(openSync(unfinished, 'wx', 0o600))
      const database = opened()
      // An unfinished file is thrown away, and a finished one is synced as a whole.
      database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -16384')
      upgrade(database, unfinished)
      database.exec('begin')
      sql = sqliteSql(database)
    },
    async finish(last) {
      for (const table of tableNames) {
        open?.prepare('delete from sqlite_sequence where name = ?').run(table)
        open?.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(table, last[table])
      }
      open?.exec('commit')
      sql = sqliteSql(opened(true))
    },
    async commit() {
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
    },
    async close() {
      open?.close()
      rmSync(unfinished, { force: true })
      close()
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
    requireKnown(database, path)
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

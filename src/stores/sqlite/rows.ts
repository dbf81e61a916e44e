import { existsSync, realpathSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { CannotOpen } from '../../waitlist/ports.ts'
import { storeName } from '../place.ts'
import { columnsOf, type Kind, type Row, type Source, type Table, type Target, tableNames, using } from '../rows.ts'
import { mark, openSqliteFile, unmark } from './file.ts'
import { openForReading } from './reader.ts'

/** How a column is read. */
const reading: Partial<Record<Kind, (column: string) => string>> = {
  doubt: column => `(${column} or token is not null)`,
}

/**
 * Opens a file to move from, as the service would open it: other processes are locked out, and a file of an older release
 * is upgraded.
 *
 * @throws {CannotOpen} also when there is no such file.
 */
export async function sqliteSource(path: string): Promise<Source> {
  requireFile(path)
  openForReading(path).close()
  return open(path)
}

/** Opens a file to move to, also one that is marked, and makes it where there is none. */
export async function sqliteTarget(path: string): Promise<Target> {
  requireFile(path)
  return open(path, true)
}

/** Whether both paths lead to one file. */
export const sameFile = (one: string, other: string): boolean =>
  existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other)

function requireFile(path: string): void {
  if (path === ':memory:')
    throw new CannotOpen('sqlite::memory: is of one process only. It can be moved neither to nor from.')
}

function open(path: string, moving = false): Promise<Source & Target> {
  const name = storeName({ kind: 'sqlite', path })
  const use = using(name)
  /** Everything here keeps the thread: the other side, and a signal that stops the move, come first. */
  const inTurn = async <T>(what: () => T): Promise<T> => {
    await turn()
    return use(what)
  }
  return use(() => {
    const file = openSqliteFile({ path, moving })
    const { database } = file
    const prepared = Object.fromEntries(tableNames.map(table => [table, prepare(database, table)])) as Record<
      Table,
      ReturnType<typeof prepare>
    >
    // Grows when another connection commits. The lock keeps services out, not a replay of deliveries or the sqlite3 shell.
    const version = database.prepare('pragma data_version')
    const opened = version.get()?.data_version
    return {
      name,
      identity: file.path,
      count: table => inTurn(() => prepared[table].count.get()?.rows as number),
      read: (table, after, most) => inTurn(() => prepared[table].read.all(after, most) as unknown as Row[]),
      changed: () => use(() => version.get()?.data_version !== opened),
      begin: () => use(() => mark(database)),
      end: () => use(() => unmark(database)),
      write: (table, rows) =>
        inTurn(() => {
          database.exec('begin immediate')
          try {
            for (const row of rows) prepared[table].insert.run(...row)
            database.exec('commit')
          } catch (error) {
            if (database.isTransaction) database.exec('rollback')
            throw error
          }
        }),
      close: async () => file.close(),
    }
  })
}

function prepare(database: DatabaseSync, table: Table) {
  const columns = columnsOf(table)
  const names = columns.map(([column]) => column)
  const values = columns.map(([column, kind]) => reading[kind]?.(column) ?? column)
  const [key] = names
  const read = database.prepare(`select ${values.join(', ')} from ${table} where ${key} > ? order by ${key} limit ?`)
  read.setReturnArrays(true)
  return {
    read,
    count: database.prepare(`select count(*) as rows from ${table}`),
    insert: database.prepare(`insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`),
  }
}

import { closeSync, existsSync, fdatasyncSync, fstatSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Log, OperatorError } from '../../config/operator.ts'
import { requireKnownSchema, SCHEMA_VERSION, sqliteSchema } from '../migrate.ts'
import { createPrivately, makePrivate, realPath, reasonOf, whyEphemeral } from './files.ts'

/** "wait" in ASCII: marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x77616974

/** Milliseconds that a command waits for another process that writes. */
const BUSY_TIMEOUT = 5_000

/** Earlier releases can corrupt a WAL database with two connections (https://sqlite.org/wal.html#walresetbug). */
const OLDEST_SQLITE = [3, 51, 3]

type Pragma = readonly [name: string, value: string | number, reads: string | number]

/** Each is read back: SQLite ignores what it does not know or cannot do. */
const settings: readonly Pragma[] = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['foreign_keys', 'ON', 1],
  ['trusted_schema', 'OFF', 0],
  ['secure_delete', 'ON', 1], // what is deleted is overwritten, and not only left out
  ['mmap_size', 0, 0], // an I/O error is then a return code, not a SIGBUS
  ['cache_size', -16_384, -16_384], // KiB: enough for the inner pages of the indexes on a million contacts
  ['journal_size_limit', 67_108_864, 67_108_864],
  ...(process.platform === 'darwin' ? [['checkpoint_fullfsync', 'ON', 1] as const] : []),
]

/** Of the service: sync.ts waits for its commits, and background.ts shortens its log. It never waits for a lock. */
const ofService: readonly Pragma[] = [
  ['synchronous', 'NORMAL', 1],
  ['wal_autocheckpoint', 0, 0],
  ['cache_size', -4_096, -4_096],
  ['busy_timeout', 0, 0],
]

/** An open database file. */
export interface SqliteFile {
  /** The file itself, if the configured path is a symbolic link. */
  readonly path: string
  readonly database: DatabaseSync
  close(): void
}

/** The same for the service, which keeps other services out. */
interface ServiceFile extends SqliteFile {
  /** Of the database, opened once and closed last: closing one frees all locks that the process has on the file. */
  readonly descriptor: number
  /** Of its log. */
  readonly logDescriptor: number
  /** Throws when the database or its log was moved, deleted or replaced: what is written now is lost. */
  requireFiles(): void
}

/**
 * Opens the file for the service, and makes it if needed.
 *
 * @throws {OperatorError} when SQLite is too old, or the file is in use, newer than this program, or not ours.
 */
export function openForService(given: string, log: Pick<Log, 'warn'>): ServiceFile {
  const lock = lockFile(given)
  const { path } = lock
  try {
    const file = openFile(path)
    try {
      for (const ending of ['', '-wal', '-shm', '-lock']) makePrivate(path + ending, log)
      const lost = whyEphemeral(path)
      if (lost !== null) log.warn({ folder: dirname(path) }, lost)
      const served = serve(file)
      const close = () => {
        served.close()
        lock.close()
      }
      return { ...served, close }
    } catch (error) {
      file.close()
      throw error
    }
  } catch (error) {
    lock.close()
    throw error instanceof OperatorError ? error : cannotUse(path, error)
  }
}

/**
 * What an earlier process committed may be visible and not on disk: it is brought into the database, and the log synced,
 * before anything is answered.
 *
 * @throws {OperatorError} when somebody who reads keeps the log.
 */
function serve({ path, database, close }: SqliteFile): ServiceFile {
  if (read(database, 'pragma wal_checkpoint(truncate)') !== 0)
    throw new OperatorError(`${path} is in use: a backup, another command or a shell has it open. End that first.`)
  database.prepare('select count(*) from sqlite_schema').get()
  const descriptor = openSync(path, 'r+')
  const logDescriptor = openSync(`${path}-wal`, 'r+')
  fdatasyncSync(logDescriptor)
  apply(database, ofService)
  const inodes = [fstatSync(descriptor).ino, fstatSync(logDescriptor).ino]
  return {
    path,
    database,
    descriptor,
    logDescriptor,
    requireFiles() {
      for (const [i, each] of [path, `${path}-wal`].entries()) {
        if (statSync(each, { throwIfNoEntry: false })?.ino !== inodes[i])
          throw new Error(`${i === 0 ? 'it' : 'its log'} was moved or deleted`)
      }
    },
    close() {
      close()
      closeSync(descriptor)
      closeSync(logDescriptor)
    },
  }
}

/**
 * Opens the file for a command, beside a service or without one.
 *
 * @throws {OperatorError} when there is none, unless it may be made, or it is not ours.
 */
export function openForCommand(given: string, { make = false } = {}): SqliteFile {
  const path = make ? asOperator(given, () => realPath(given)) : given
  if (!make && !existsSync(path)) {
    throw new OperatorError(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
  }
  return asOperator(path, () => openFile(path))
}

/** @throws {OperatorError} when `use` fails. */
function asOperator<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (error) {
    throw error instanceof OperatorError ? error : cannotUse(path, error)
  }
}

const cannotUse = (path: string, error: unknown) =>
  new OperatorError(`${path} cannot be used: ${reasonOf(path, error)}`)

function openFile(path: string): SqliteFile {
  requireOurs(path)
  createPrivately(path)
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT })
  try {
    apply(database, settings)
    createTables(database, path)
    return { path, database, close: () => database.close() }
  } catch (error) {
    database.close()
    throw error
  }
}

/** Checked before any setting: a file that is not ours, or newer, stays as it is. */
function requireOurs(path: string): void {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) return
  if (file.size === 0 && (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    // SQLite would delete the log.
    throw new OperatorError(
      `${path} is empty, but it has a log: it was truncated. Move both away, and restore a backup.`,
    )
  }
  // A log is only read, since closing the last connection would remove it. Without one a journal may have to be rolled back.
  const database = new DatabaseSync(path, { readOnly: existsSync(`${path}-wal`), timeout: BUSY_TIMEOUT })
  try {
    requireSqliteVersion(database)
    requireOwnSchema(database, path)
  } finally {
    database.close()
  }
}

/** @throws {OperatorError} when another program made the file, or a newer one. */
export function requireOwnSchema(database: DatabaseSync, path: string): void {
  const tables = read(database, 'select count(*) from sqlite_schema')
  if (tables !== 0 && read(database, 'pragma application_id') !== APPLICATION_ID) {
    throw new OperatorError(`${path} is a database of another program. Give Waitlist a DATABASE_URL of its own.`)
  }
  requireKnownSchema(read(database, 'pragma user_version') as number, path)
}

/** @throws {OperatorError} when SQLite does not take a setting. */
function apply(database: DatabaseSync, pragmas: readonly Pragma[]): void {
  for (const [name, value, expected] of pragmas) {
    database.exec(`pragma ${name} = ${value}`)
    const actual = read(database, `pragma ${name}`)
    if (actual === expected) continue
    throw new OperatorError(`SQLite did not accept the setting ${name} = ${value} (it reads ${actual}).`)
  }
}

function createTables(database: DatabaseSync, path: string): void {
  requireOwnSchema(database, path)
  if (read(database, 'pragma user_version') === SCHEMA_VERSION) return
  database.exec('begin immediate')
  // Another process may have made them since.
  if (read(database, 'pragma user_version') !== SCHEMA_VERSION) {
    database.exec(
      `${sqliteSchema()}; pragma application_id = ${APPLICATION_ID}; pragma user_version = ${SCHEMA_VERSION}`,
    )
  }
  database.exec('commit')
}

function requireSqliteVersion(database: DatabaseSync): void {
  const version = String(read(database, 'select sqlite_version()'))
  const parts = version.split('.').map(Number)
  const difference = OLDEST_SQLITE.map((least, i) => (parts[i] ?? 0) - least).find(each => each !== 0) ?? 0
  if (difference >= 0) return
  throw new OperatorError(
    `This Node.js brings SQLite ${version}; Waitlist needs ${OLDEST_SQLITE.join('.')} or newer. Use a newer Node.js.`,
  )
}

/** The first column of the first row. */
function read(database: DatabaseSync, sql: string): string | number {
  return Object.values((database.prepare(sql).get() ?? {}) as Record<string, string | number>)[0] ?? ''
}

/**
 * Keeps services, restores and loads off a file: an exclusive transaction on a second, empty database beside it. The operating
 * system releases it however the process ends. Commands are not locked out.
 *
 * @throws {OperatorError} when another process has it, or it cannot be made.
 */
export function lockFile(given: string): { readonly path: string; close(): void } {
  const path = asOperator(given, () => realPath(given))
  const lock = asOperator(path, () => {
    createPrivately(`${path}-lock`, existsSync(path) ? path : dirname(path))
    return new DatabaseSync(`${path}-lock`, { timeout: 0 })
  })
  try {
    lock.exec('pragma journal_mode = memory; begin exclusive')
    return { path, close: () => lock.close() }
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== 5) throw cannotUse(path, error)
    throw new OperatorError(
      `${path} is in use by another Waitlist process. Stop that one first, or give this one another DATABASE_URL.`,
    )
  }
}

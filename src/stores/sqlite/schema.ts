import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Log, OperatorError } from '../../waitlist/ports/log.ts'
import { type Migration, pendingMigrations, readMigrations } from '../migrate.ts'
import { whyEphemeral } from './ephemeral.ts'
import { reasonOf } from './rights.ts'

/** "wait" in ASCII: marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x77616974

/** Milliseconds to wait for another process that writes. */
export const BUSY_TIMEOUT = 5_000

/** Earlier releases can corrupt a WAL database with two connections (https://sqlite.org/wal.html#walresetbug). */
const OLDEST_SQLITE = [3, 51, 3]

const migrations = new URL('./migrations/', import.meta.url)

/**
 * Each setting is read back: SQLite ignores what it does not know or cannot do, and a store that is not synced must not
 * start.
 */
const settings: readonly (readonly [name: string, value: string | number, reads: string | number])[] = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2], // a commit returns when the log is synced: an acknowledged signup survives power loss
  ['foreign_keys', 'ON', 1],
  ['trusted_schema', 'OFF', 0],
  ['secure_delete', 'ON', 1], // what is deleted is overwritten, and not only left out
  ['mmap_size', 0, 0], // an I/O error is then a return code, not a SIGBUS
  ['cache_size', -4_096, -4_096], // KiB: enough for the inner pages of the indexes on a million contacts
  ['wal_autocheckpoint', 0, 0], // log.ts does it, apart from the commits
  ['journal_size_limit', 67_108_864, 67_108_864],
]

export interface OpenOptions {
  /** A path, or `:memory:`. */
  readonly path: string
  /** The most pages (4 KiB) of the file. For tests: a disk that is full at a chosen moment. */
  readonly maxPages?: number | undefined
}

/** An open database, and the lock that keeps other processes out while it is open. */
export interface SqliteFile {
  /** The file itself, if the configured path is a symbolic link. */
  readonly path: string
  readonly database: DatabaseSync
  /**
   * Of the same file, so that it can be synced; null: it is in memory. It is closed after the database: closing one
   * descriptor of a file frees all locks that a process has on it, SQLite's too (https://sqlite.org/howtocorrupt.html, 2.2).
   */
  readonly descriptor: number | null
  close(): void
}

/**
 * Opens the file, creates or upgrades it if needed, and locks out other processes.
 *
 * @throws {OperatorError} when SQLite is too old, or the file is in use, newer than this program, or not ours.
 */
export function openSqliteFile({ path: given, maxPages }: OpenOptions, news?: Pick<Log, 'warn'>): SqliteFile {
  const inMemory = given === ':memory:'
  const path = inMemory ? given : realPath(given)
  if (!inMemory) requireOurs(path)
  const lock = inMemory ? undefined : takeLock(path)
  try {
    if (!inMemory) {
      createPrivately(path)
      for (const ending of ['', '-wal', '-shm', '-lock']) makePrivate(path + ending, news)
      // SQLite would open it for reading, and only the first signup would tell.
      requireWritable(path)
      const lost = whyEphemeral(path)
      if (lost !== null) news?.warn({ folder: dirname(path) }, lost)
    }
    const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT })
    let descriptor: number | null
    try {
      requireSqliteVersion(database)
      applySettings(database, inMemory)
      if (maxPages !== undefined) database.exec(`pragma max_page_count = ${maxPages}`)
      upgrade(database, path)
      descriptor = inMemory ? null : openSync(path, 'r+')
    } catch (error) {
      database.close()
      throw error
    }
    return {
      path,
      database,
      descriptor,
      close() {
        database.close()
        if (descriptor !== null) closeSync(descriptor)
        lock?.close()
      },
    }
  } catch (error) {
    lock?.close()
    throw error
  }
}

/** @throws {OperatorError} when there is no such file, or it is not ours. */
export function openForReading(path: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    statSync(path)
    database = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
    requireKnown(database, path)
    return database
  } catch (error) {
    database?.close()
    if (error instanceof OperatorError) throw error
    if (['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))) {
      throw new OperatorError(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
    }
    throw new OperatorError(`${path} cannot be read: ${reasonOf(path, error)}`)
  }
}

/** The path of a database file that is written elsewhere first, and the lock that keeps other processes off it. */
export interface SqlitePlace {
  /** The file itself, if the given path is a symbolic link. */
  readonly path: string
  close(): void
}

/**
 * Keeps other processes off a file that is created or replaced as a whole. Creates its folder, but none above it.
 *
 * @throws {OperatorError} when the file is in use or not ours. `anyState`: it may be newer than this program, or damaged.
 */
export function holdPlace(given: string, { anyState = false } = {}): SqlitePlace {
  const above = dirname(dirname(resolve(given)))
  if (!existsSync(above)) throw new OperatorError(`There is no folder ${above}. Make it, or correct the path.`)
  const path = realPath(given)
  try {
    requireOurs(path, anyState ? requireOwn : requireKnown)
  } catch (error) {
    if (!anyState || !isDamage(error)) throw error
  }
  const lock = takeLock(path)
  return { path, close: () => lock.close() }
}

/** What SQLite says of a file that is not a database, or no longer (CORRUPT, NOTADB). */
export const isDamage = (error: unknown): boolean =>
  [11, 26].includes(((error as { errcode?: number }).errcode ?? 0) & 0xff)

/**
 * An exclusive transaction on a second, empty database beside the file. The operating system releases it however the
 * process ends. Readers of the data itself (an export, the sqlite3 shell) are not locked out.
 */
function takeLock(path: string): DatabaseSync {
  createPrivately(`${path}-lock`)
  const lock = new DatabaseSync(`${path}-lock`, { timeout: 0 })
  try {
    lock.exec('pragma journal_mode = memory') // no journal file beside it
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== 5) throw error
    throw new OperatorError(
      `${path} is in use by another Waitlist process. Stop that one first, or give this one another DATABASE_URL.`,
    )
  }
}

function requireSqliteVersion(database: DatabaseSync): void {
  const { version } = database.prepare('select sqlite_version() as version').get() as { version: string }
  const parts = version.split('.').map(Number)
  const difference = OLDEST_SQLITE.map((least, i) => (parts[i] ?? 0) - least).find(d => d !== 0) ?? 0
  if (difference < 0) {
    throw new OperatorError(
      `This Node.js brings SQLite ${version}; Waitlist needs ${OLDEST_SQLITE.join('.')} or newer. Use a newer Node.js.`,
    )
  }
}

/** Checked before the lock and all settings: a file that is not ours, or not for this program, stays as it is. */
function requireOurs(path: string, judge: typeof requireOwn = requireKnown): void {
  if (!existsSync(path)) return
  const file = statSync(path)
  if (file.isDirectory()) throw isFolder(path)
  // SQLite would delete the log.
  if (file.size === 0 && (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new OperatorError(
      `${path} is empty, but it has a log: it was truncated. Move both away, and restore a backup.`,
    )
  }
  const database = new DatabaseSync(path, { timeout: 5000 })
  try {
    requireSqliteVersion(database)
    judge(database, path)
  } finally {
    database.close()
  }
}

const isFolder = (path: string): OperatorError =>
  new OperatorError(`${path} is a folder. Give the path of a file, such as ${join(path, 'waitlist.db')}.`)

/** @throws {OperatorError} when SQLite does not take a setting. */
export function applySettings(database: DatabaseSync, inMemory: boolean): void {
  for (const [name, value, expected] of settings) {
    database.exec(`pragma ${name} = ${value}`)
    const actual = read(database, `pragma ${name}`)
    const skipped = inMemory && (name === 'journal_mode' || name === 'mmap_size')
    if (!skipped && actual !== expected) {
      throw new OperatorError(`SQLite did not accept the setting ${name} = ${value} (it reads ${actual}).`)
    }
  }
}

/** Creates the tables, or upgrades them. */
export function upgrade(database: DatabaseSync, path: string): void {
  for (const { number, sql } of requireKnown(database, path)) {
    database.exec(
      `begin immediate; ${sql}; pragma application_id = ${APPLICATION_ID}; pragma user_version = ${number}; commit`,
    )
  }
}

/**
 * @returns what the file still needs.
 * @throws {OperatorError} when another program made the file, or a newer one.
 */
export function requireKnown(database: DatabaseSync, path: string): readonly Migration[] {
  requireOwn(database, path)
  const version = read(database, 'pragma user_version') as number
  return pendingMigrations(readMigrations(migrations), version, path)
}

/** @throws {OperatorError} when another program made the file. */
function requireOwn(database: DatabaseSync, path: string): void {
  const tables = read(database, 'select count(*) from sqlite_schema')
  if (tables !== 0 && read(database, 'pragma application_id') !== APPLICATION_ID) {
    throw new OperatorError(`${path} is a database of another program. Give Waitlist a DATABASE_URL of its own.`)
  }
}

/** The first column of the first row. */
function read(database: DatabaseSync, sql: string): string | number {
  const row = database.prepare(sql).get() as Record<string, string | number> | undefined
  return Object.values(row ?? {})[0] ?? ''
}

/** Follows symbolic links, so that one file has one lock and one log. Creates its folder. */
function realPath(path: string): string {
  if (path.endsWith('/') || path.endsWith(sep)) throw isFolder(path)
  createFolder(dirname(resolve(path)))
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

/** Readable by this user alone: the list is personal data. */
const PRIVATE = 0o700
const PRIVATE_FILE = 0o600

/**
 * Makes an empty file if there is none, for SQLite, which would make one that everybody can read; its log takes the mode
 * of the database. A file that exists is not opened: closing it would free the locks that this process has on it (fcntl).
 */
export function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_FILE))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Closes a file, if it exists, to all other users. If it belongs to one of them, there is only a warning. */
function makePrivate(path: string, news?: Pick<Log, 'warn'>): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  if ((mode & 0o077) === 0) return
  try {
    chmodSync(path, PRIVATE_FILE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    const file = { file: path, mode: (mode & 0o777).toString(8) }
    news?.warn(file, 'other users may read the list: this file is not ours, so its mode stays; make it 600')
  }
}

function requireWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK)
  } catch (error) {
    throw new OperatorError(`${path} cannot be written: ${reasonOf(path, error)}`)
  }
}

/** Creates the missing folders of a path. Each new name is synced in the folder above it, to survive power loss. */
function createFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: PRIVATE })
  if (first === undefined) return
  for (let created = folder; created !== dirname(first); created = dirname(created)) {
    sync(dirname(created))
  }
}

/** Syncs a file, or the names in a folder, to disk. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

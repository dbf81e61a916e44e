import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CannotOpen } from '../../waitlist/ports.ts'
import { pendingMigrations, readMigrations } from '../migrate.ts'
import { notEnded } from '../rows.ts'

/** "wait" in ASCII: marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x77616974
/** "move": a file of ours, and a move into it has not ended. To an older release it is of another program. */
const MOVING = 0x6d6f7665

/** Earlier releases can corrupt a WAL database that two connections use (https://sqlite.org/wal.html#walresetbug). */
const OLDEST_SQLITE = [3, 51, 3]

const migrations = new URL('../migrations/sqlite/', import.meta.url)

/**
 * Each setting is made and read back: SQLite ignores what it does not know or cannot do, and a store that is not synced
 * must not start.
 */
const settings: readonly (readonly [name: string, value: string | number, reads: string | number])[] = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2], // a commit returns when the log is synced: an acknowledged signup survives power loss
  ['foreign_keys', 'ON', 1],
  ['trusted_schema', 'OFF', 0],
  ['mmap_size', 0, 0], // an I/O error is then a return code, not a SIGBUS
  ['cache_size', -16_384, -16_384], // KiB: the inner pages of the index of some million addresses
  ['wal_autocheckpoint', 1000, 1000],
  ['journal_size_limit', 67_108_864, 67_108_864],
]

export interface OpenOptions {
  /** A path, or `:memory:`. */
  readonly path: string
  /** A move is to fill it: its mark is no hindrance, and no more than one folder is made. */
  readonly moving?: boolean
  /** Bounds the file (pages of 4 KiB): a disk that is full at a chosen moment. For tests. */
  readonly maxPages?: number
}

/** An open database, and the lock that keeps other processes off while it is open. */
export interface SqliteFile {
  /** The file itself, where the configured path is a symbolic link. */
  readonly path: string
  readonly database: DatabaseSync
  close(): void
}

/**
 * Opens the file, creates or upgrades it where needed, and locks out a second process.
 *
 * @throws {CannotOpen} when SQLite is too old, or the file is in use, newer than this program, half moved, or not ours.
 */
export function openSqliteFile({ path: given, moving = false, maxPages }: OpenOptions): SqliteFile {
  const inMemory = given === ':memory:'
  const path = inMemory ? given : realPath(given, moving)
  if (!inMemory) requireOurs(path)
  const lock = inMemory ? undefined : takeLock(path)
  try {
    const database = new DatabaseSync(path, { timeout: 5000 })
    try {
      requireSqliteVersion(database)
      if (!moving) requireMoved(database, path)
      applySettings(database, inMemory)
      if (maxPages !== undefined) database.exec(`pragma max_page_count = ${maxPages}`)
      upgrade(database, path)
    } catch (error) {
      database.close()
      throw error
    }
    return {
      path,
      database,
      close() {
        database.close()
        lock?.close()
      },
    }
  } catch (error) {
    lock?.close()
    throw error
  }
}

/**
 * An exclusive transaction on a second, empty database beside the file. The operating system frees it when the process
 * ends, however it ends; readers of the data itself (an export, the sqlite3 shell) are not kept out.
 */
function takeLock(path: string): DatabaseSync {
  const lock = new DatabaseSync(`${path}-lock`, { timeout: 0 })
  try {
    lock.exec('pragma journal_mode = memory') // no journal file beside it
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== 5) throw error
    throw new CannotOpen(
      `${path} is in use by another Waitlist process. Stop that one first, or give this one another DATABASE_URL.`,
    )
  }
}

function requireSqliteVersion(database: DatabaseSync): void {
  const { version } = database.prepare('select sqlite_version() as version').get() as { version: string }
  const parts = version.split('.').map(Number)
  const difference = OLDEST_SQLITE.map((least, i) => (parts[i] ?? 0) - least).find(d => d !== 0) ?? 0
  if (difference < 0) {
    throw new CannotOpen(
      `This Node.js brings SQLite ${version}; Waitlist needs ${OLDEST_SQLITE.join('.')} or newer. Use a newer Node.js.`,
    )
  }
}

/** Looks before the lock is made: nothing is left beside a file that is not ours. */
function requireOurs(path: string): void {
  if (!existsSync(path)) return
  if (statSync(path).isDirectory()) throw isFolder(path)
  const database = new DatabaseSync(path, { timeout: 5000 })
  try {
    requireSqliteVersion(database)
    const tables = read(database, 'select count(*) from sqlite_schema')
    if (tables !== 0 && !ours.includes(read(database, 'pragma application_id'))) {
      throw new CannotOpen(`${path} is a database of another program. Give Waitlist a DATABASE_URL of its own.`)
    }
  } finally {
    database.close()
  }
}

const isFolder = (path: string): CannotOpen =>
  new CannotOpen(`${path} is a folder. Give the path of a file, such as ${join(path, 'waitlist.db')}.`)

const ours: readonly unknown[] = [APPLICATION_ID, MOVING]

const isMarked = (database: DatabaseSync): boolean => read(database, 'pragma application_id') === MOVING

/** @throws {CannotOpen} when a move into this file has not ended: contacts are there without their events. */
export function requireMoved(database: DatabaseSync, path: string): void {
  if (isMarked(database)) throw notEnded(path)
}

/** Marks the file as one that is half moved, until `unmark`. */
export function mark(database: DatabaseSync): void {
  if (!isMarked(database)) database.exec(`pragma application_id = ${MOVING}`)
}

export function unmark(database: DatabaseSync): void {
  if (isMarked(database)) database.exec(`pragma application_id = ${APPLICATION_ID}`)
}

/** @throws {CannotOpen} when SQLite does not take a setting. */
export function applySettings(database: DatabaseSync, inMemory: boolean): void {
  for (const [name, value, expected] of settings) {
    database.exec(`pragma ${name} = ${value}`)
    const actual = read(database, `pragma ${name}`)
    const skipped = inMemory && (name === 'journal_mode' || name === 'mmap_size')
    if (!skipped && actual !== expected) {
      throw new CannotOpen(`SQLite did not accept the setting ${name} = ${value} (it reads ${actual}).`)
    }
  }
}

function upgrade(database: DatabaseSync, path: string): void {
  const current = read(database, 'pragma user_version') as number
  const id = isMarked(database) ? MOVING : APPLICATION_ID
  for (const { number, sql } of pendingMigrations(readMigrations(migrations), current, path)) {
    database.exec(`begin immediate; ${sql}; pragma application_id = ${id}; pragma user_version = ${number}; commit`)
  }
}

/** The first column of the first row. */
function read(database: DatabaseSync, sql: string): string | number {
  const row = database.prepare(sql).get() as Record<string, string | number> | undefined
  return Object.values(row ?? {})[0] ?? ''
}

/** One file has one lock and one log, whatever names lead to it. Creates its folder; for a move, no more than that one. */
function realPath(path: string, moving: boolean): string {
  if (path.endsWith('/') || path.endsWith(sep)) throw isFolder(path)
  const above = dirname(dirname(resolve(path)))
  if (moving && !existsSync(above)) throw new CannotOpen(`There is no folder ${above}. Make it, or correct the path.`)
  createFolder(dirname(resolve(path)))
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

/** Readable by this user alone: the list is personal data. */
const PRIVATE = 0o700

/** Creates what is missing of a folder's path; each new name is synced in the folder above, to survive power loss. */
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

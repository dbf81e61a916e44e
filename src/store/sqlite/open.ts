import {
  chownSync,
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Log, OperatorError } from '../../config/operator.ts'
import { SCHEMA_VERSION, sqliteSchema } from '../open.ts'

/** "wait" in ASCII: marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x77616974

/** Milliseconds that a command waits for another process that writes. */
const BUSY_TIMEOUT = 5_000

/** Deleted rows are overwritten; the cache takes the inner pages of the indexes on a million contacts. */
const SETTINGS = `
  pragma journal_mode = wal;
  pragma synchronous = full;
  pragma checkpoint_fullfsync = on;
  pragma trusted_schema = off;
  pragma secure_delete = on;
  pragma cache_size = -16384;
  pragma journal_size_limit = 67108864;
`

/** sync.ts waits for the commits of the service, and background.ts shortens its log. It never waits for a lock. */
const SERVICE_SETTINGS = `
  pragma synchronous = normal;
  pragma wal_autocheckpoint = 0;
  pragma cache_size = -4096;
  pragma busy_timeout = 0;
`

/** Bytes that must be free: room for the log, a checkpoint and a person at work. */
export const MINIMUM_FREE = 64 * 1024 * 1024

/** Bytes that are free for a database file. */
export function freeFor(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

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
 * Opens the file for the service, and makes it if needed. What an earlier process committed may be visible and not on disk: it
 * is brought into the database, and the log synced, before anything is answered.
 *
 * @throws {OperatorError} when the file is in use, or cannot be used.
 */
export function openForService(given: string, log: Pick<Log, 'warn'>): ServiceFile {
  const lock = lockFile(given)
  const { path } = lock
  let database: DatabaseSync | undefined
  try {
    warnIfEphemeral(path, log)
    database = openFile(path)
    if (database.prepare('pragma wal_checkpoint(truncate)').get()!.busy !== 0)
      throw new OperatorError(`${path} is in use: a backup, another command or a shell has it open. End that first.`)
    const descriptor = openSync(path, 'r+')
    const logDescriptor = openSync(`${path}-wal`, 'r+')
    fdatasyncSync(logDescriptor)
    database.exec(SERVICE_SETTINGS)
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
        database!.close()
        closeSync(descriptor)
        closeSync(logDescriptor)
        lock.close()
      },
    }
  } catch (error) {
    database?.close()
    lock.close()
    throw unusable(path, error)
  }
}

/**
 * Opens the file for a command, beside a service or without one.
 *
 * @throws {OperatorError} when there is none, unless it may be made, or it cannot be used.
 */
export function openForCommand(path: string, { make = false } = {}): SqliteFile {
  if (!make && !existsSync(path)) {
    throw new OperatorError(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
  }
  try {
    makeFolder(path)
    const database = openFile(path)
    return { path, database, close: () => database.close() }
  } catch (error) {
    throw unusable(path, error)
  }
}

/**
 * Keeps services, restores and loads off a file: an exclusive transaction on a second, empty database beside it. The operating
 * system releases it however the process ends. Commands are not locked out.
 *
 * @throws {OperatorError} when another process has it, or it cannot be made.
 */
export function lockFile(given: string): { readonly path: string; close(): void } {
  let path = given
  let lock: DatabaseSync | undefined
  try {
    // One file has one lock, whatever links lead to it.
    if (existsSync(given)) path = realpathSync(given)
    makeFolder(path)
    lock = new DatabaseSync(`${path}-lock`, { timeout: 0 })
    giveToOwner(`${path}-lock`)
    lock.exec('pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    lock?.close()
    if (errcodeOf(error) !== 5) throw unusable(path, error)
    throw new OperatorError(
      `${path} is in use by another Waitlist process. Stop that one first, or give this one another DATABASE_URL.`,
    )
  }
  return { path, close: () => lock.close() }
}

/** Only `data` is made, since any other folder that is missing may be mistyped. Its name is synced, too. */
function makeFolder(path: string): void {
  const folder = dirname(path)
  if (existsSync(folder)) return
  if (basename(folder) !== 'data')
    throw new OperatorError(`There is no folder ${folder}. Make it, or correct DATABASE_URL.`)
  mkdirSync(folder)
  syncPath(dirname(folder))
}

function openFile(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT })
  try {
    giveToOwner(path)
    const isNew = requireOurs(database, path) === 'empty'
    database.exec(SETTINGS)
    if (isNew) {
      database.exec('begin immediate')
      // Another process may have made the tables since.
      if (requireOurs(database, path) === 'empty')
        database.exec(
          `${sqliteSchema()}; pragma application_id = ${APPLICATION_ID}; pragma user_version = ${SCHEMA_VERSION}`,
        )
      database.exec('commit')
    }
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** @throws {OperatorError} when another program made the database, or another version of this one. */
export function requireOurs(database: DatabaseSync, path: string): 'empty' | 'ours' {
  const read = (text: string) => Object.values(database.prepare(text).get()!)[0]
  if (read('select count(*) from sqlite_schema') === 0) return 'empty'
  if (read('pragma application_id') === APPLICATION_ID && read('pragma user_version') === SCHEMA_VERSION) return 'ours'
  throw new OperatorError(
    `${path} was made by another program, or by another version of Waitlist. Start that one, or set another DATABASE_URL.`,
  )
}

/** A file that root makes is given to the owner of the folder, who runs the service. */
export function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  chownSync(path, uid, gid)
}

/** Syncs a file, or the names in a folder, to disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/** tmpfs, ramfs and overlayfs, as statfs(2) numbers them. */
const EPHEMERAL = [0x0102_1994, 0x8584_58f6, 0x794c_7630]

function warnIfEphemeral(path: string, log: Pick<Log, 'warn'>): void {
  const folder = dirname(path)
  if (EPHEMERAL.includes(statfsSync(folder).type))
    log.warn({ folder }, 'this folder is in memory or inside a container: unless it lasts, the list is lost')
}

const unusable = (path: string, error: unknown): OperatorError =>
  error instanceof OperatorError ? error : new OperatorError(`${path} cannot be used: ${reasonOf(path, error)}`)

const errcodeOf = (error: unknown): number => (error as { errcode?: number }).errcode ?? 0

/** Why a database file cannot be used, with what to do. */
export function reasonOf(path: string, error: unknown): string {
  const { message, code = '' } = error as NodeJS.ErrnoException
  const errcode = errcodeOf(error)
  const reason = errcode === 0 ? message : `${message} (SQLite ${errcode})`
  // READONLY and CANTOPEN of SQLite.
  const isRefused = ['EACCES', 'EPERM', 'EROFS'].includes(code) || [8, 14].includes(errcode & 0xff)
  return isRefused ? `${reason}. User ${process.getuid?.()} must be able to write it, and in ${dirname(path)}` : reason
}

import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { type Log, OperatorError } from '../../config/operator.ts'

/** The files of a database, which only their owner may read: the list is personal data. */

/** Bytes that must be free: room for the log, a checkpoint and a person at work. */
export const MINIMUM_FREE = 64 * 1024 * 1024

/** Bytes that are free for a database file. */
export function freeFor(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

/** Follows symbolic links, so that one file has one lock and one log. Creates its folder. */
export function realPath(path: string): string {
  if (/[\\/]$/.test(path) || statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new OperatorError(`${path} is a folder. Give the path of a file, such as ${join(path, 'waitlist.db')}.`)
  }
  createFolder(dirname(resolve(path)))
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
}

/** Only the folder `data` is made, since any other that is missing may be a typing error. Its name is synced, too. */
function createFolder(folder: string): void {
  if (existsSync(folder)) return
  if (basename(folder) !== 'data' || !existsSync(dirname(folder))) {
    throw new OperatorError(`There is no folder ${folder}. Make it, or correct DATABASE_URL.`)
  }
  mkdirSync(folder, { mode: 0o700 })
  syncPath(dirname(folder))
}

/**
 * Makes an empty file if there is none, for SQLite, which would make one that everybody can read; its log takes the mode of
 * the database. What root makes belongs to the owner of `like`, as whom the service runs. A file that exists is not opened: closing it would free SQLite's locks (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function createPrivately(path: string, like = dirname(path)): void {
  try {
    const descriptor = openSync(path, 'wx', 0o600)
    if (process.geteuid?.() === 0) {
      const { uid, gid } = statSync(like)
      fchownSync(descriptor, uid, gid)
    }
    closeSync(descriptor)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Closes a file, if it exists, to all other users. If it belongs to one of them, there is only a warning. */
export function makePrivate(path: string, log: Pick<Log, 'warn'>): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  if ((mode & 0o077) === 0) return
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    log.warn({ file: path }, 'other users may read the list: this file is not ours, so its mode stays; make it 600')
  }
}

/** Syncs a file, or the names in a folder, to disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/** Types of file systems (statfs(2)) that are gone with the machine, or with the container. */
const EPHEMERAL: Readonly<Record<number, string>> = {
  16914836: 'in memory',
  2240043254: 'in memory',
  2035054128: 'inside a container',
}

/** Why a database in this folder may not last; null: nothing says so. */
export function whyEphemeral(path: string): string | null {
  const where = EPHEMERAL[statfsSync(dirname(path)).type]
  return where === undefined ? null : `the list is kept ${where}: unless ${dirname(path)} lasts, it is lost`
}

/** Why a database file cannot be used, with what to do. */
export function reasonOf(path: string, error: unknown): string {
  const { message, code = '', errcode = 0 } = error as NodeJS.ErrnoException & { errcode?: number }
  // READONLY and CANTOPEN of SQLite.
  const isRefusal = ['EACCES', 'EPERM', 'EROFS'].includes(code) || [8, 14].includes(errcode & 0xff)
  if (isRefusal) {
    const lacking = lackingRight(path)
    if (lacking !== null) return lacking
  }
  return errcode === 0 ? message : `${message} (SQLite ${errcode})`
}

/** What this user may not do with a database file, there or not, or in its folder. Null: nothing. */
export function lackingRight(path: string): string | null {
  let folder = dirname(resolve(path))
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  const files = ['', '-wal', '-shm', '-lock'].map(ending => path + ending).filter(each => existsSync(each))
  for (const place of [folder, ...files]) {
    try {
      accessSync(place, constants.R_OK | constants.W_OK | (place === folder ? constants.X_OK : 0))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EROFS') {
        return `${place} is on a file system that is read-only. Set DATABASE_URL to a place that can be written.`
      }
      const user = process.getuid === undefined ? 'this user' : `this user (uid ${process.getuid()})`
      return `${user} may not write ${place}, which belongs to uid ${statSync(place).uid}. Run it as that user, or change the owner.`
    }
  }
  return null
}

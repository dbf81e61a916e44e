import { closeSync, openSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

/** Bytes that must be free: room for the write-ahead log, a checkpoint and a person at work. */
export const MINIMUM_FREE = 64 * 1024 * 1024

/** Bytes that are free for a database file. */
export function freeFor(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

export class OutOfSpace extends Error {}

/**
 * Milliseconds for which one check is good. What was committed just before a file is deleted is lost anyway, so a check
 * for each batch would cost a tenth of the rate and save next to nothing.
 */
const FRESH = 250

const SQLITE_FULL = 13
/** A write, or the growth of the log's index, failed with anything but ENOSPC. */
const SQLITE_IOERR_WRITE = 778
const SQLITE_IOERR_SHMSIZE = 4874

export type Disk = ReturnType<typeof diskUnder>

/**
 * The disk that holds a database file. `minimumFree`: bytes. `size`: the bytes of the database once its whole log is brought
 * into it.
 */
export function diskUnder(path: string, minimumFree: number, size: () => number) {
  const log = `${path}-wal`
  const look = (file: string) => statSync(file, { throwIfNoEntry: false })
  const inodes = [look(path)?.ino, look(log)?.ino]
  let sizeBefore = 0
  let goodUntil = 0
  let free = 0

  /** Throws when the database or its log was moved or deleted, or the database truncated: what is written now is lost. */
  function requireFiles(): void {
    const now = performance.now()
    if (now < goodUntil) return
    const database = look(path)
    if (database?.ino !== inodes[0]) throw new Error(`${path} was moved or deleted`)
    if (look(log)?.ino !== inodes[1]) throw lostLog(path, 'moved or deleted')
    const whole = size()
    // It may be smaller than the whole, whose rest is in the log, and shrink with it, as by VACUUM.
    if (database!.size < Math.min(sizeBefore, whole)) throw new Error(`${path} was truncated: restore a backup`)
    sizeBefore = database!.size
    // While somebody reads, the log grows and the database does not. If there were no room left to bring the one into the
    // other, nothing could ever shorten the log.
    free = freeFor(path) - Math.max(0, whole - sizeBefore)
    goodUntil = now + FRESH
  }

  return {
    requireFiles,
    /** Also throws `OutOfSpace` when too little is free. */
    requireRoom(): void {
      requireFiles()
      if (free < minimumFree) throw new OutOfSpace(`less than ${minimumFree} bytes are free for ${path}`)
    },
    /** The next check looks again. */
    forget(): void {
      goodUntil = 0
    },
    /** Whether a write failed because the disk is full or a quota is used up: it fails as a whole, and passes by itself. */
    isFull(error: unknown): boolean {
      const { errcode } = error as { errcode?: number }
      if (errcode === SQLITE_FULL) return true
      return (errcode === SQLITE_IOERR_WRITE || errcode === SQLITE_IOERR_SHMSIZE) && hasNoRoom(path)
    },
  }
}

/** The failure of a store whose log is gone: what was acknowledged since it was last brought into the database is lost. */
export function lostLog(path: string, how: string): Error {
  let left = 'what is left cannot be read'
  try {
    // As it is without the log.
    const database = new DatabaseSync(`${pathToFileURL(path)}?immutable=1`, { readOnly: true })
    const row = database.prepare('select count(*) as contacts, max(created_at) as newest from contact').get()
    const { contacts, newest } = row as { contacts: number; newest: number | null }
    left = `at least ${contacts} contacts are left`
    if (newest !== null) left += `, the newest of ${new Date(newest).toISOString()}`
  } catch {}
  return new Error(`${path}-wal was ${how}, and later signups that were acknowledged may be lost: ${left}`)
}

/** Bytes. More than any file system allocates at once, so that a quota with a few blocks left is found used up as well. */
const PROBE = 1024 * 1024

/** What the operating system says of a full disk or a quota that is used up: Node has no code for the latter. */
export const saysNoRoom = (error: unknown): boolean => {
  const { errno = 0 } = error as NodeJS.ErrnoException
  return -errno === constants.errno.ENOSPC || -errno === constants.errno.EDQUOT
}

/**
 * Whether a file beside `path` cannot be written for want of space. SQLite calls a quota that is used up (EDQUOT) an I/O
 * error, like a broken disk, and does not say which of them it was. Nothing is at stake in telling them apart like this: a
 * write that failed, unlike a sync, has harmed nothing that was stored before.
 */
export function hasNoRoom(path: string): boolean {
  const probe = `${path}-probe`
  try {
    const descriptor = openSync(probe, 'w', 0o600)
    try {
      writeFileSync(descriptor, Buffer.alloc(PROBE))
    } finally {
      closeSync(descriptor)
    }
    return false
  } catch (error) {
    return saysNoRoom(error)
  } finally {
    rmSync(probe, { force: true })
  }
}

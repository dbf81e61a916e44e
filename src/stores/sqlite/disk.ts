import { closeSync, openSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname } from 'node:path'

/** The disk that holds a database file. */
export interface Disk {
  /** Throws when the database or its log was moved or deleted: what is written to a deleted file is lost. */
  requireFiles(): void
  /** Also throws `OutOfSpace` when too little is free. */
  requireRoom(): void
  /** The next check looks again. */
  forget(): void
  /** Whether a write failed because the disk is full or a quota is used up: it fails as a whole, and passes by itself. */
  isFull(error: unknown): boolean
}

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

/** `minimumFree`: bytes. `size`: the bytes of the database once its whole log is brought into it. */
export function diskUnder(path: string, minimumFree: number, size: () => number): Disk {
  const files = [path, `${path}-wal`].map(file => ({ file, inode: statSync(file, { throwIfNoEntry: false })?.ino }))
  let goodUntil = 0
  let free = 0

  function look(): void {
    const now = performance.now()
    if (now < goodUntil) return
    const [database] = files.map(({ file, inode }) => {
      const found = statSync(file, { throwIfNoEntry: false })
      if (found?.ino !== inode) throw new Error(`${file} was moved or deleted`)
      return found
    })
    // While somebody reads, the log grows and the database does not. If there were no room left to bring the one into the
    // other, nothing could ever shorten the log.
    const growth = Math.max(0, size() - (database?.size ?? 0))
    free = freeFor(path) - growth
    goodUntil = now + FRESH
  }

  return {
    requireFiles: look,
    requireRoom() {
      look()
      if (free < minimumFree) throw new OutOfSpace(`less than ${minimumFree} bytes are free for ${path}`)
    },
    forget() {
      goodUntil = 0
    },
    isFull(error) {
      const { errcode } = error as { errcode?: number }
      if (errcode === SQLITE_FULL) return true
      return (errcode === SQLITE_IOERR_WRITE || errcode === SQLITE_IOERR_SHMSIZE) && hasNoRoom(path)
    },
  }
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

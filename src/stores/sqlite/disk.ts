import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The disk that holds a database file. */
export interface Disk {
  /** Throws when the database or its log was moved or deleted: what is written to a deleted file is lost. */
  requireFiles(): void
  /** Also throws `OutOfSpace` when too little is free. */
  requireRoom(): void
}

export class OutOfSpace extends Error {}

/**
 * Milliseconds for which one check is good. What was committed just before a file is deleted is lost anyway, so a check
 * for each batch would cost a tenth of the rate and save next to nothing.
 */
const FRESH = 250

/** `minimumFree`: bytes. */
export function diskUnder(path: string, minimumFree: number): Disk {
  const files = [path, `${path}-wal`].map(file => ({ file, inode: inodeOf(file) }))
  let goodUntil = 0
  let free = 0

  function look(): void {
    const now = performance.now()
    if (now < goodUntil) return
    for (const { file, inode } of files) {
      if (inodeOf(file) !== inode) throw new Error(`${file} was moved or deleted`)
    }
    const { bavail, bsize } = statfsSync(dirname(path))
    free = bavail * bsize
    goodUntil = now + FRESH
  }

  return {
    requireFiles: look,
    requireRoom() {
      look()
      if (free < minimumFree) throw new OutOfSpace(`less than ${minimumFree} bytes are free for ${path}`)
    },
  }
}

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino

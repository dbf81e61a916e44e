import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'

/** Keeps the write-ahead log short. */
export interface WriteAheadLog {
  /** To be called after a commit. */
  shorten(): void
  /** Resolves when no other connection of ours is left, so that the one that is closed last removes the log. */
  close(): Promise<void>
}

/**
 * Pages in the log before they are brought into the database. Eight times SQLite's own default: pages that change again
 * and again, as those of the index do, are written there once, which saves a quarter of the store's time. Unless somebody
 * reads for long, the log stays below 100 MB.
 */
const LONGEST = 8_000

const SQLITE_FULL = 13

/**
 * A checkpoint of so many pages would stand in the way of commits for some tenths of a second. So a second connection, in
 * a thread of its own that is made when it is first needed, does most of it beside the commits, and the writer only the
 * short rest, after which SQLite begins the log anew.
 */
export function writeAheadLog(database: DatabaseSync, path: string, longest = LONGEST): WriteAheadLog {
  // Says how long the log is and does nothing (SQLite 3.51).
  const look = database.prepare('pragma wal_checkpoint(noop)')
  let helper: { readonly thread: Worker; readonly ended: Promise<unknown> } | undefined
  let helping = false

  /** What a full disk has no room for stays in the log until the next checkpoint: nothing is lost by that. */
  function checkpoint(): void {
    try {
      database.exec('pragma wal_checkpoint(passive)')
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_FULL) throw error
    }
  }

  function help(): void {
    helping = true
    if (helper !== undefined) {
      helper.thread.postMessage('again')
      return
    }
    const thread = new Worker(CHECKPOINTER, { eval: true, workerData: existing(path) })
    thread.on('message', () => {
      helping = false
      checkpoint()
    })
    // Without it the log is shortened here, and when the file is closed.
    thread.on('error', () => {})
    helper = { thread, ended: new Promise(resolve => thread.on('exit', resolve)) }
  }

  return {
    shorten() {
      const { log, checkpointed } = look.get() as { log: number; checkpointed: number }
      if (log - checkpointed < longest) return
      if (!helping) help()
      // It cannot keep up.
      else if (log - checkpointed > 4 * longest) checkpoint()
    },
    async close() {
      helper?.thread.postMessage('close')
      await helper?.ended
    },
  }
}

/**
 * Names a file that must exist. If the database was moved away, opening its path would make an empty one, and SQLite
 * deletes the log that it finds beside an empty database.
 */
const existing = (path: string): string => `${pathToFileURL(path)}?mode=rw`

const CHECKPOINTER = `
const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
const { parentPort, workerData } = require('node:worker_threads')
const database = new DatabaseSync(workerData, { timeout: 5000 })
database.exec('pragma synchronous = full')
const checkpoint = () => {
  try { database.exec('pragma wal_checkpoint(passive)') } catch {}
  parentPort.postMessage('done')
}
checkpoint()
parentPort.on('message', what => {
  if (what !== 'close') return checkpoint()
  database.close()
  parentPort.close()
})
`

import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../waitlist/ports/log.ts'
import { throttle } from '../../waitlist/quiet-log.ts'
import { type Disk, lostLog } from './disk.ts'
import { BUSY_TIMEOUT, type SqliteFile } from './schema.ts'

/** Keeps the write-ahead log short. */
export interface WriteAheadLog {
  /** Throws when somebody has truncated it: what was committed is lost. */
  requireWhole(): void
  /** To be called after a commit, before it is acknowledged: it requires the log to be whole. */
  shorten(): void
  /**
   * To be called when the disk is full: no commit is possible, so no commit shortens the log either, which may be what
   * fills the disk. True: its space is free again. False: somebody reads, or the rest is being brought into the database,
   * so ask again; this does something at most once a second.
   */
  release(): boolean
  /**
   * To be called after a commit, once something was erased, until it is true: then the log has no copy of that either. What it
   * does, and how often, is that of `release`, but commits wait for a short rest only.
   */
  empty(): boolean
  /**
   * Resolves when no other connection of ours is left, so that the one that is closed last removes the log. Rejects when it
   * is not whole.
   */
  close(): Promise<void>
}

/**
 * Pages in the log before they are brought into the database. Eight times SQLite's own default: pages that change again
 * and again, as those of the index do, are written there once, which saves a quarter of the store's time. Unless somebody
 * reads for long, the log stays below 100 MB.
 */
const LONGEST = 8_000

/** Pages that commits may wait for when the log is emptied. */
const SHORT = 1_000

/** Milliseconds between two attempts to release the space of the log, and between two warnings of its length. */
const RELEASE_EVERY = 1_000
const WARN_EVERY = 60_000

/**
 * A checkpoint of so many pages would stand in the way of commits for some tenths of a second. So a second connection, in
 * a thread of its own that is made when it is first needed, does most of it beside the commits, and the writer only the
 * short rest, after which SQLite begins the log anew. SQLite syncs the database only when a checkpoint reaches the end of
 * the log. Beside commits only the writer's does, so the thread syncs what it has written itself.
 */
export function writeAheadLog(
  { database, path, descriptor }: Pick<SqliteFile, 'database' | 'path' | 'descriptor'>,
  disk: Pick<Disk, 'isFull'>,
  news: Pick<Log, 'info' | 'warn'>,
  longest = LONGEST,
): WriteAheadLog {
  // Says how long the log is and does nothing (SQLite 3.51).
  const look = database.prepare('pragma wal_checkpoint(noop)')
  const truncate = database.prepare('pragma wal_checkpoint(truncate)')
  const state = () => look.get() as { log: number; checkpointed: number }
  const { page_size: pageSize } = database.prepare('pragma page_size').get() as { page_size: number }
  /** Bytes of a page in the log with its heading (https://sqlite.org/fileformat2.html#walformat). */
  const frameSize = pageSize + 24
  // SQLite has no locks on this file, which closing it would free.
  const file = openSync(`${database.location()}-wal`, 'r')
  /** Frames of the log after the last commit. */
  let committed = 0
  const mayRelease = throttle(RELEASE_EVERY)
  const mayWarn = throttle(WARN_EVERY)
  let warned = false
  let helper: { readonly thread: Worker; readonly ended: Promise<unknown> } | undefined
  let helping = false
  let helpless = false

  /** Whether a frame is in the file. It begins with the number of its page, which is never 0. */
  function has(frame: number): boolean {
    if (frame === 0) return true
    const number = Buffer.alloc(4)
    return readSync(file, number, 0, 4, HEADING + (frame - 1) * frameSize) === 4 && number.readUInt32BE() > 0
  }

  /**
   * Looks for the last frame of the commit before: whenever somebody truncated the file, it is missing, or part of the hole
   * that the commit after it has left. `frames`: how many SQLite has in its index. Another process may shorten both beside us.
   */
  function requireWhole(frames = state().log): void {
    if (has(Math.min(committed, frames)) || has(Math.min(committed, state().log))) return
    throw lostLog(path, 'truncated')
  }

  /** What a full disk has no room for stays in the log until the next checkpoint: nothing is lost by that. */
  function checkpoint(): void {
    try {
      database.exec('pragma wal_checkpoint(passive)')
    } catch (error) {
      if (disk.isFull(error)) return
      requireWhole()
      throw error
    }
  }

  function help(): void {
    helping = true
    if (helper !== undefined) {
      helper.thread.postMessage('again')
      return
    }
    const thread = new Worker(CHECKPOINTER, { eval: true, workerData: { path: existing(path), descriptor } })
    thread.on('message', (why: string | null) => {
      // After a sync that failed, the next one may succeed although pages are lost.
      if (why !== null) throw new Error(`${path} could not be synced: ${why}`)
      helping = false
      checkpoint()
    })
    // Without it the log is shortened here, and when the file is closed.
    thread.on('error', () => {
      helpless = true
    })
    helper = { thread, ended: new Promise(resolve => thread.on('exit', resolve)) }
  }

  /** `most`: pages that are brought into the database here. `look`: told how many the log has. */
  function truncated(most: number, look = (_pages: number): void => {}): boolean {
    if (!mayRelease()) return false
    const { log, checkpointed } = state()
    look(log)
    if (log - checkpointed >= most && !helpless) {
      if (!helping) help()
      return false
    }
    // This waits for readers if it may, and for them the signups would wait.
    database.exec('pragma busy_timeout = 0')
    try {
      return truncate.get()?.busy === 0
    } catch (error) {
      if (!disk.isFull(error)) throw error
      return false
    } finally {
      database.exec(`pragma busy_timeout = ${BUSY_TIMEOUT}`)
    }
  }

  /** `pages`: the length of the log. `most`: the length that is not worth a warning. */
  function watch(pages: number, most: number): void {
    if (pages > most && mayWarn()) {
      warned = true
      const megabytes = Math.round((pages * frameSize) / 1e6)
      news.warn(
        { megabytes, readBy: readersOf(path) },
        'the write-ahead log is long: while somebody reads the database, it cannot be shortened',
      )
    } else if (warned && pages < longest) {
      warned = false
      news.info({}, 'the write-ahead log is short again')
    }
  }

  return {
    requireWhole: () => requireWhole(),
    shorten() {
      const { log, checkpointed } = state()
      requireWhole(log)
      committed = log
      watch(log, 4 * longest)
      if (log - checkpointed < longest) return
      if (!helping) help()
      // It cannot keep up.
      else if (log - checkpointed > 4 * longest) checkpoint()
    },
    release: () => truncated(longest, pages => watch(pages, longest)),
    empty: () => truncated(SHORT),
    async close() {
      helper?.thread.postMessage('close')
      await helper?.ended
      requireWhole()
      closeSync(file)
    },
  }
}

/** Bytes at the start of the log. */
const HEADING = 32

/**
 * Names a file that must exist. If the database was moved away, opening its path would make an empty one, and SQLite
 * deletes the log that it finds beside an empty database.
 */
const existing = (path: string): string => `${pathToFileURL(path)}?mode=rw`

const CHECKPOINTER = `
const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
const { fdatasyncSync } = require('node:fs')
const { parentPort, workerData } = require('node:worker_threads')
const { path, descriptor } = workerData
const database = new DatabaseSync(path, { timeout: 5000 })
database.exec('pragma synchronous = full')
const checkpoint = () => {
  try { database.exec('pragma wal_checkpoint(passive)') } catch {}
  let why = null
  try { fdatasyncSync(descriptor) } catch (error) { why = error.message }
  parentPort.postMessage(why)
}
checkpoint()
parentPort.on('message', what => {
  if (what !== 'close') return checkpoint()
  database.close()
  parentPort.close()
})
`

/** The bytes of the shared-memory file that readers lock (https://sqlite.org/walformat.html#wal_locks). */
const FIRST_READER = 123
const LAST_READER = 127

/**
 * The other processes that read a database at this moment, as `sqlite3 (pid 123)`. Only Linux tells; it does not tell of
 * those in other containers.
 */
function readersOf(path: string): string[] {
  try {
    const { ino } = statSync(`${path}-shm`)
    const pids = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map(line => /^\d+: POSIX +\S+ +READ (\d+) [^:]+:[^:]+:(\d+) (\d+) \d+$/.exec(line) ?? [])
      .filter(([, , inode, byte]) => Number(inode) === ino && +byte! >= FIRST_READER && +byte! <= LAST_READER)
      .map(([, pid]) => Number(pid))
    return [...new Set(pids)].filter(pid => pid !== process.pid).map(pid => `${commandOf(pid)} (pid ${pid})`)
  } catch {
    return []
  }
}

const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()

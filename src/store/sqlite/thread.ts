/**
 * The background thread of a database file: it reads what takes long, and brings the log into the database, so that the main
 * thread, which writes, does neither.
 */

import { fsyncSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { Value } from '../database.ts'
import { statementsOf } from './connection.ts'

export type Request =
  | { readonly do: 'read'; readonly text: string; readonly values?: readonly Value[] | undefined }
  | { readonly do: 'checkpoint'; readonly how: Checkpoint }

/** `passive`: beside those who commit. With the others nobody commits, and the log is begun anew, or emptied. */
export type Checkpoint = 'passive' | 'restart' | 'truncate'

/** The rows, or the pages that the log has then; 0: it was begun anew. */
export interface Answer {
  readonly result?: unknown
  readonly error?: string
  readonly errcode?: number
}

export interface ThreadData {
  readonly path: string
  /** Of the database file: the process opens it once, since closing one frees SQLite's locks. */
  readonly descriptor: number
}

/** Pages that are left for the next step. */
const REST = 250
/** Rounds of one step, beside signups. */
const ROUNDS = 3

/** Milliseconds that it waits for a lock: with that of writers, restart and truncate wait for those who read. */
const BUSY_TIMEOUT = 100

/** SQLITE_IOERR_FSYNC. */
const NOT_SYNCED = 1_034

const { path, descriptor } = workerData as ThreadData
const reader = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
const { all } = statementsOf(reader)
const writer = new DatabaseSync(path, { timeout: BUSY_TIMEOUT })
writer.exec(
  'pragma synchronous = normal; pragma wal_autocheckpoint = 0; pragma journal_size_limit = 67108864;' +
    ' pragma checkpoint_fullfsync = on',
)

const checkpoint = (how: Checkpoint | 'noop') =>
  writer.prepare(`pragma wal_checkpoint(${how})`).get() as { busy: number; log: number; checkpointed: number }

/** A change that really is one: it begins the log anew, and syncs its header, so that the main thread does not. */
const touch = writer.prepare(
  "insert into job_lock (name, until) values ('log', 1) on conflict (name) do update set until = until + 1",
)

/** Passive does so only when it has copied everything. */
function syncDatabase(): void {
  try {
    fsyncSync(descriptor)
  } catch (error) {
    throw Object.assign(error as Error, { errcode: NOT_SYNCED })
  }
}

function shorten(how: Checkpoint): number {
  let before = -1
  let last = checkpoint('passive')
  for (let round = 1; round < ROUNDS && last.log - last.checkpointed > REST; round++) {
    syncDatabase()
    before = last.checkpointed
    last = checkpoint('passive')
  }
  if (last.log > last.checkpointed) syncDatabase()
  // A reader keeps the log from being copied. Restart would wait for it while it holds the write lock.
  const advances = last.checkpointed > before
  const isAnew = how !== 'passive' && advances && checkpoint(how).busy === 0
  // Where signups have made the log longer, a change would only make the main thread read its pages again.
  const { log, checkpointed } = checkpoint('noop')
  if (isAnew || checkpointed === log) touch.run()
  return isAnew ? 0 : log
}

function answer(request: Request): Answer {
  try {
    return { result: request.do === 'read' ? all(request.text, request.values) : shorten(request.how) }
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number }
    return { error: message, ...(errcode && { errcode }) }
  }
}

parentPort!.on('message', (request: Request) => parentPort!.postMessage(answer(request)))

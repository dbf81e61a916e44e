/**
 * The thread that owns the embedded database: the one connection that writes. Requests that wait share a transaction;
 * each is answered with one reply, in order.
 */

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { OperatorError } from '../../waitlist/ports.ts'
import { diskUnder, OutOfSpace } from './disk.ts'
import { writeAheadLog } from './log.ts'
import { type Result, type Step, stepping } from './outbox.ts'
import { type OpenOptions, openSqliteFile } from './schema.ts'
import { type AdmitBatch, type AdmittedBatch, admitting, adopt, type Surroundings } from './signups.ts'

export interface SqliteOptions extends OpenOptions, Surroundings {
  /** Bytes that must be free on the disk; with less, signups are refused while the machine can still be repaired. */
  readonly minimumFree: number
}

/** `now` is in milliseconds since 1970. */
export type Request =
  | { readonly do: 'admit'; readonly batch: AdmitBatch; readonly now: number }
  | { readonly do: 'step'; readonly steps: readonly Step[]; readonly now: number }
  | { readonly do: 'check' }

export type Reply =
  | { readonly is: 'done' }
  /** The commit is synced. */
  | { readonly is: 'admitted'; readonly batch: AdmittedBatch }
  /** The commit is synced. */
  | { readonly is: 'stepped'; readonly results: readonly Result[] }
  /** Nothing was stored; a later request may succeed. */
  | { readonly is: 'unavailable'; readonly why: string }
  /** The file cannot be opened as configured. */
  | { readonly is: 'refused'; readonly why: string }
  /** What is written can no longer be trusted. The last reply. */
  | { readonly is: 'failed'; readonly why: string }

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_FULL = 13

/** Requests in one transaction: what is on its way at most, so nobody waits for more than two commits. */
const MERGED = 32

interface Database {
  /** Answers requests, in their order, all in one transaction. */
  answer(requests: readonly Request[]): readonly Reply[]
  close(): Promise<void>
}

function open(options: SqliteOptions): Database {
  const file = openSqliteFile(options)
  const { database } = file
  adopt(database, options.provider, Date.now())
  const begin = database.prepare('begin immediate')
  const commit = database.prepare('commit')
  const rollback = database.prepare('rollback')
  const admit = admitting(database, options)
  const step = stepping(database, options)
  const disk = options.path === ':memory:' ? null : diskUnder(file.path, options.minimumFree)
  const log = options.path === ':memory:' ? null : writeAheadLog(database, file.path)

  function carryOut(request: Request): Reply {
    switch (request.do) {
      case 'admit':
        return { is: 'admitted', batch: admit(request.batch, request.now) }
      case 'step':
        return { is: 'stepped', results: request.steps.map(each => step(each, request.now)) }
      case 'check':
        // The transaction holds the write lock, as a signup would.
        return { is: 'done' }
    }
  }

  /** Why a request must not be carried out; null: it may. */
  function refusal(request: Request): Reply | null {
    try {
      // An attempt is ended on a disk that is too full to begin another, whose end might not be stored.
      if (request.do === 'step' && request.steps.every(({ do: what }) => what === 'settle')) disk?.requireFiles()
      else disk?.requireRoom()
      return null
    } catch (error) {
      return judge(error)
    }
  }

  return {
    answer(requests) {
      const refusals = requests.map(refusal)
      if (!refusals.includes(null)) return refusals as Reply[]
      try {
        begin.run()
        const replies = requests.map((request, i) => refusals[i] ?? carryOut(request))
        commit.run()
        log?.shorten()
        return replies
      } catch (error) {
        const reply = judge(error)
        if (database.isTransaction && reply.is === 'unavailable') rollback.run()
        return requests.map((_, i) => refusals[i] ?? reply)
      }
    },
    async close() {
      await log?.close()
      file.close()
    },
  }
}

/**
 * The classes of failure. Full or busy passes by itself. Anything else (I/O error, corruption, not a database, a moved
 * file) means that later commits could look fine and still be lost.
 */
function judge(error: unknown): Reply {
  const { message, errcode } = error as Error & { errcode?: number }
  if (error instanceof OutOfSpace) return { is: 'unavailable', why: message }
  const why = errcode === undefined ? message : `${message} (SQLite ${errcode})`
  const primary = (errcode ?? 0) & 0xff
  const passing = primary === SQLITE_FULL || primary === SQLITE_BUSY || primary === SQLITE_LOCKED
  return { is: passing ? 'unavailable' : 'failed', why }
}

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread')
const reply = (...replies: readonly Reply[]) => port.postMessage(replies)
try {
  const database = open(workerData as SqliteOptions)
  let closing = false
  port.on('message', async (first: Request | 'close') => {
    // What comes now is answered when this thread has ended.
    if (closing) return
    const requests: Request[] = []
    let message: Request | 'close' | undefined = first
    // What came while the last transaction was synced is the next one.
    while (message !== undefined && message !== 'close') {
      requests.push(message)
      message = requests.length < MERGED ? receiveMessageOnPort(port)?.message : undefined
    }
    if (requests.length > 0) reply(...database.answer(requests))
    if (message === 'close') {
      closing = true
      await database.close()
      reply({ is: 'done' })
      port.close()
    }
  })
  reply({ is: 'done' })
} catch (error) {
  const { message } = error as Error
  reply({ is: error instanceof OperatorError ? 'refused' : 'failed', why: message })
  port.close()
}

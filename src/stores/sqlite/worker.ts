/**
 * The thread that owns the embedded database: the one connection that writes. Requests that wait share a transaction;
 * each is answered with one reply, in order.
 */

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { type Log, OperatorError } from '../../waitlist/ports/log.ts'
import type { Admission } from '../../waitlist/ports/signups.ts'
import type { Signup } from '../../waitlist/rules/signup.ts'
import type { Transaction } from '../group-commit.ts'
import { diskUnder, hasNoRoom, OutOfSpace, saysNoRoom } from './disk.ts'
import { writeAheadLog } from './log.ts'
import { type Result, type Step, stepping } from './outbox.ts'
import { reasonOf, whereToLook } from './rights.ts'
import { type OpenOptions, openSqliteFile } from './schema.ts'
import { admitting, adopt, type SignupOptions, trying } from './signups.ts'

export interface SqliteOptions extends OpenOptions, SignupOptions {
  /** Bytes that must be free on the disk; with less, signups are refused while the machine can still be repaired. */
  readonly minimumFree: number
}

/** `now` is in milliseconds since 1970. */
export type Request =
  | { readonly do: 'admit'; readonly signups: readonly Signup[]; readonly now: number }
  | { readonly do: 'step'; readonly steps: readonly Step[]; readonly now: number }
  /** A signup that is taken back in the same transaction. */
  | { readonly do: 'try'; readonly now: number }

export type Reply =
  | { readonly is: 'done' }
  /** The commit is synced. `ended`: of the last one in a transaction. */
  | { readonly is: 'admitted'; readonly admissions: readonly Admission[]; ended: Transaction | null }
  /** The commit is synced. */
  | { readonly is: 'stepped'; readonly results: readonly Result[] }
  /** Nothing was stored; a later request may succeed. */
  | { readonly is: 'unavailable'; readonly why: string }
  /** The file cannot be opened as configured. */
  | { readonly is: 'refused'; readonly why: string }
  /** What is written can no longer be trusted. The last reply. */
  | { readonly is: 'failed'; readonly why: string }

/** What the operator should know: a line of the log, on its way to the main thread. */
export interface LogLine {
  readonly level: 'info' | 'warn'
  readonly details: object
  readonly text: string
}

/** Recoverable errors: busy, locked and full pass by themselves. */
const PASSING = [5, 6, 13]
/** What opening a file on a full disk may end with: an I/O error, "full", "cannot open". */
const CANNOT_WRITE = [10, 13, 14]

const noRoom = (why: string): string => `the disk is full, or a quota is used up: ${why}`

/** Requests in one transaction. Fewer are on their way at any time, so nobody waits for more than two commits. */
const MERGED = 32

/**
 * An attempt is ended on a disk that is too full to begin another, whose end might not be stored. A service starts on such a
 * disk, and goes on when there is room: the secrets that it starts with are few and small.
 */
const needsNoRoom = (step: Step): boolean =>
  step.do === 'settle' || step.do === 'settle digest' || (step.do === 'upkeep' && step.call[0] === 'secret')

interface Database {
  /** Answers requests, in their order, all in one transaction. */
  answer(requests: readonly Request[]): Promise<readonly Reply[]>
  close(): Promise<Reply>
}

function open(options: SqliteOptions, news: Pick<Log, 'info' | 'warn'>): Database {
  const file = openSqliteFile(options, news)
  const { database } = file
  adopt(database, options.provider, Date.now())
  const begin = database.prepare('begin immediate')
  const commit = database.prepare('commit')
  const rollback = database.prepare('rollback')
  const admit = admitting(database, options)
  const trial = trying(database, admit)
  const step = stepping(database, options)
  const pages = database.prepare('select page_count * page_size as size from pragma_page_count, pragma_page_size')
  const inMemory = options.path === ':memory:'
  const disk = inMemory ? null : diskUnder(file.path, options.minimumFree, () => pages.get()?.size as number)
  const log = disk && writeAheadLog(file, disk, news)

  let logHoldsErased = false

  async function carryOut(request: Request): Promise<Reply> {
    switch (request.do) {
      case 'admit':
        return { is: 'admitted', admissions: admit(request.signups, request.now), ended: null }
      case 'step':
        return {
          is: 'stepped',
          results: await inTurn(request.steps, each => {
            if (each.do === 'upkeep' && ['leave', 'expire'].includes(each.call[0])) logHoldsErased = true
            return step(each, request.now)
          }),
        }
      case 'try':
        trial(request.now)
        return { is: 'done' }
    }
  }

  function requireRoom(): void {
    try {
      disk?.requireRoom()
    } catch (error) {
      if (!(error instanceof OutOfSpace) || log?.release() !== true) throw error
      disk?.forget()
      disk?.requireRoom()
    }
  }

  /** Why a request must not be carried out; null: it may. */
  function refusal(request: Request): Reply | null {
    try {
      if (request.do === 'step' && request.steps.every(needsNoRoom)) disk?.requireFiles()
      else requireRoom()
      return null
    } catch (error) {
      return judge(error)
    }
  }

  /**
   * The classes of failure. Full or busy passes by itself. Anything else (I/O error, corruption, not a database, a moved
   * file) means that later commits could look fine and still be lost.
   */
  function judge(error: unknown): Reply {
    if (error instanceof OutOfSpace) return { is: 'unavailable', why: error.message }
    const { message, errcode } = error as Error & { errcode?: number }
    const why = errcode === undefined ? message : `${message} (SQLite ${errcode})`
    if (disk?.isFull(error)) return { is: 'unavailable', why: noRoom(why) }
    if (PASSING.includes((errcode ?? 0) & 0xff)) return { is: 'unavailable', why }
    return { is: 'failed', why: damage() ?? why + whereToLook(error) }
  }

  /** What was done to the files, if that is why SQLite cannot read or write them. */
  function damage(): string | null {
    try {
      if (database.isTransaction) rollback.run()
      disk?.forget()
      disk?.requireFiles()
      log?.requireWhole()
      return null
    } catch (error) {
      return error instanceof Error && !('errcode' in error) ? error.message : null
    }
  }

  return {
    async answer(requests) {
      const refusals = requests.map(refusal)
      if (!refusals.includes(null)) return refusals as Reply[]
      const began = performance.now()
      try {
        begin.run()
        const replies = await inTurn(requests, (request, i) => refusals[i] ?? carryOut(request))
        commit.run()
        const took = performance.now() - began
        const admitted = replies.filter(reply => reply.is === 'admitted')
        const last = admitted.at(-1)
        if (last !== undefined) {
          last.ended = { took, items: admitted.reduce((sum, { admissions }) => sum + admissions.length, 0) }
        }
        log?.shorten()
        if (logHoldsErased && log?.empty() !== false) logHoldsErased = false
        return replies
      } catch (error) {
        const reply = judge(error)
        if (reply.is === 'unavailable') {
          if (database.isTransaction) rollback.run()
          log?.release()
        }
        return requests.map((_, i) => refusals[i] ?? reply)
      }
    },
    async close() {
      try {
        await log?.close()
      } catch (error) {
        return judge(error)
      }
      file.close()
      return { is: 'done' }
    },
  }
}

/** One after the other, since all of them share a transaction. */
async function inTurn<Item, Answer>(
  items: readonly Item[],
  use: (item: Item, position: number) => Answer | Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const [i, item] of items.entries()) answers.push(await use(item, i))
  return answers
}

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread')
const reply = (...replies: readonly Reply[]) => port.postMessage(replies)
const line = (level: LogLine['level']) => (details: object, text: string) =>
  port.postMessage({ level, details, text } satisfies LogLine)
try {
  const database = open(workerData as SqliteOptions, { info: line('info'), warn: line('warn') })
  const waiting: (Request | 'close')[] = []
  let isAnswering = false

  /**
   * What came while the last transaction was under way is the next one. What comes after a close is answered when this thread
   * has ended.
   */
  async function answerAll(): Promise<void> {
    isAnswering = true
    while (waiting.length > 0) {
      for (let more = receiveMessageOnPort(port!); more !== undefined; more = receiveMessageOnPort(port!))
        waiting.push(more.message)
      const end = waiting.indexOf('close')
      const requests = waiting.splice(0, Math.min(end === -1 ? waiting.length : end, MERGED)) as Request[]
      if (requests.length > 0) reply(...(await database.answer(requests)))
      else {
        reply(await database.close())
        port!.close()
        return
      }
    }
    isAnswering = false
  }
  port.on('message', (message: Request | 'close') => {
    waiting.push(message)
    if (!isAnswering) void answerAll()
  })
  reply({ is: 'done' })
} catch (error) {
  const { message, errcode = 0 } = error as Error & { errcode?: number }
  const { path } = workerData as SqliteOptions
  const full = saysNoRoom(error) || (CANNOT_WRITE.includes(errcode & 0xff) && hasNoRoom(path))
  reply({
    is: error instanceof OperatorError ? 'refused' : 'failed',
    why: full ? noRoom(message) : reasonOf(path, error),
  })
  port.close()
}

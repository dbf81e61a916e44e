import { extname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { type Log, OperatorError } from '../../waitlist/ports/log.ts'
import { StoreUnavailable } from '../../waitlist/ports/signups.ts'
import type { CounterData } from './counter.ts'
import type { LogLine, Reply, Request, SqliteOptions } from './worker.ts'

/** The thread that owns the database, as the main thread sees it. */
export interface Thread {
  /** Never rejects. After a failure every answer is `failed`, after a close `unavailable`. */
  ask(request: Request): Promise<Reply>
  readonly failure: Promise<Error>
  close(): Promise<void>
}

/** A thread has its own compile cache, which must be on before its first file is read (bin/waitlist.js says why). */
function threadOf({ href }: URL, workerData: unknown): Worker {
  const code = `import { enableCompileCache as on } from 'node:module'; on(); await import(${JSON.stringify(href)})`
  return new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData })
}

/** @throws {OperatorError} when the file cannot be used as it is. */
export async function startThread(options: SqliteOptions, log: Log | undefined): Promise<Thread> {
  // The same extension as this file: .ts in the repository, .js in the package.
  const worker = threadOf(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), options)
  const asked: ((reply: Reply) => void)[] = []
  const failure = Promise.withResolvers<Error>()
  let over: Reply | undefined
  let closing = false

  const fail = (why: string) => {
    over ??= { is: 'failed', why }
    failure.resolve(new Error(why))
    for (const answer of asked.splice(0)) answer(over)
    worker.terminate()
  }
  worker.on('message', (replies: readonly Reply[] | LogLine) => {
    if ('text' in replies) {
      log?.[replies.level](replies.details, replies.text)
      return
    }
    for (const reply of replies) {
      asked.shift()?.(reply)
      if (reply.is === 'failed') fail(reply.why)
    }
  })
  worker.on('error', error => fail(`the database thread died: ${(error as Error).message}`))
  const exited = new Promise<void>(resolve => {
    worker.on('exit', () => {
      if (!closing) fail('the database thread ended')
      resolve()
    })
  })

  const opened = await new Promise<Reply>(resolve => asked.push(resolve))
  if (opened.is === 'refused' || opened.is === 'failed') {
    throw new OperatorError(opened.is === 'refused' ? opened.why : `${options.path} cannot be opened: ${opened.why}`)
  }

  // While it is open, no other connection that closes brings the log into the database, not that of a store which failed:
  // with a log that somebody has truncated, this would overwrite good pages.
  const last = new DatabaseSync(options.path, { readOnly: true })
  last.prepare('select 1 from sqlite_schema').get()

  const ask = (request: Request | 'close') => {
    if (over !== undefined) return Promise.resolve(over)
    return new Promise<Reply>(resolve => {
      asked.push(resolve)
      worker.postMessage(request)
    })
  }
  return {
    ask,
    failure: failure.promise,
    async close() {
      closing = true
      if (over === undefined) last.close()
      await ask('close')
      over ??= { is: 'unavailable', why: 'the store is closed' }
      for (const answer of asked.splice(0)) answer(over)
      await exited
    },
  }
}

/**
 * Counts in the file at `path`, in a thread of its own: among millions it takes a second, for which the thread that writes
 * would let signups wait.
 */
export function countIn<Answer>(path: string, what: CounterData['what'], now: number): Promise<Answer> {
  const data: CounterData = { path, what, now }
  // The same extension as this file: .ts in the repository, .js in the package.
  const worker = threadOf(new URL(`./counter${extname(import.meta.url)}`, import.meta.url), data)
  let result: { readonly answer: Answer } | undefined
  let why = 'the contacts were not counted'
  worker.on('message', answer => {
    result = { answer }
  })
  worker.on('error', error => {
    why = (error as Error).message
  })
  return new Promise((resolve, reject) => {
    worker.on('exit', () => (result === undefined ? reject(new StoreUnavailable(why)) : resolve(result.answer)))
  })
}

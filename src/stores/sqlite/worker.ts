/**
 * The thread that owns the embedded database: the one connection that writes. It handles one request at a time, in
 * order, and answers each with one reply.
 */

import { randomUUIDv7 } from 'node:crypto'
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { CannotOpen, LEASE } from '../../waitlist/ports.ts'
import { emailKey } from '../../waitlist/signup.ts'
import { type OpenOptions, openSqliteFile, type SqliteFile } from './file.ts'
import { announcing, endingPending, leadsOutside, type Result, STILL_PENDING, type Step, steps } from './steps.ts'

export interface SqliteOptions extends OpenOptions {
  /** The name that every event is given. */
  readonly eventName: string
  /** Who is told of every event. */
  readonly destinations: readonly string[]
  /** The provider that confirms a contact before it is listed; null: there is none. */
  readonly provider: string | null
  /** Bytes that must be free on the disk; with less, signups are refused while the machine can still be repaired. */
  readonly minimumFree: number
}

/**
 * A batch of signups, column by column, one to a line: two long strings are cheaper to send to a thread than hundreds of
 * short ones. Neither names nor addresses hold line breaks; `parseSignup` refuses them.
 */
export interface AdmitBatch {
  readonly names: string
  readonly emails: string
}

/** `now` is in milliseconds since 1970. */
export type Request =
  | { readonly do: 'admit'; readonly batch: AdmitBatch; readonly now: number }
  | { readonly do: 'steps'; readonly steps: readonly Step[]; readonly now: number }
  | { readonly do: 'check' }
  | { readonly do: 'close' }

export type Reply =
  | { readonly is: 'done' }
  /**
   * The commit is synced. A line for each signup: the id of a new contact, nothing for one that was listed before, and
   * `STILL_PENDING` before the id of one that the provider has yet to confirm. With a provider the id of a new contact
   * is the token of its first lease as well.
   */
  | { readonly is: 'admitted'; readonly ids: string }
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

function serve(options: SqliteOptions, reply: (message: Reply) => void): (request: Request) => void {
  const file = openSqliteFile(options)
  const { database } = file
  const begin = database.prepare('begin immediate')
  const commit = database.prepare('commit')
  const rollback = database.prepare('rollback')
  const insertContact = database.prepare(
    'insert into contact (id, name, email, email_key, state, created_at) values (?, ?, ?, ?, ?, ?)' +
      ' on conflict (email_key) do nothing',
  )
  const announce = announcing(database, options.eventName, options.destinations)
  const take = steps(database, announce)
  const pendingIn = database.prepare('select number, id from contact where email_key = ? and state = ?')
  const register = database.prepare(
    'insert into registration (contact, provider, attempts, doubt, due_at, token) values (?, ?, 1, 1, ?, ?)',
  )
  const { list } = endingPending(database)
  // Without a provider some may still wait for one that was configured earlier.
  const mayBePending = options.provider !== null || database.prepare('select 1 from registration').get() !== undefined
  const requireRoom = options.path === ':memory:' ? () => {} : roomOn(file.path, options.minimumFree)

  function admit(batch: AdmitBatch, now: number): Reply {
    const names = batch.names.split('\n')
    const emails = batch.emails.split('\n')
    const state = options.provider === null ? 'listed' : 'pending'
    const ids: string[] = []
    requireRoom()
    begin.run()
    for (const [i, email] of emails.entries()) {
      const id = randomUUIDv7()
      const { changes, lastInsertRowid } = insertContact.run(id, names[i]!, email, emailKey(email), state, now)
      if (changes === 0) ids.push(mayBePending ? known(emailKey(email), now) : '')
      else {
        if (options.provider === null) announce(lastInsertRowid, now)
        else register.run(lastInsertRowid, options.provider, now + LEASE, id)
        ids.push(id)
      }
    }
    commit.run()
    return { is: 'admitted', ids: ids.join('\n') }
  }

  /** A pending contact waits for the provider; when there is none any more, whoever signs up again is listed. */
  function known(key: string, now: number): string {
    const pending = pendingIn.get(key, 'pending') as { number: number; id: string } | undefined
    if (pending === undefined) return ''
    if (options.provider !== null) return STILL_PENDING + pending.id
    list(pending.number, undefined)
    announce(pending.number, now)
    return pending.id
  }

  function step(all: readonly Step[], now: number): Reply {
    if (all.some(leadsOutside)) requireRoom()
    begin.run()
    const results = all.map(each => take(each, now))
    commit.run()
    return { is: 'stepped', results }
  }

  /** Takes the write lock, as a signup would, and gives it back. */
  function check(): Reply {
    requireRoom()
    begin.run()
    rollback.run()
    return { is: 'done' }
  }

  return request => {
    try {
      if (request.do === 'admit') reply(admit(request.batch, request.now))
      else if (request.do === 'steps') reply(step(request.steps, request.now))
      else if (request.do === 'check') reply(check())
      else {
        file.close()
        reply({ is: 'done' })
      }
    } catch (error) {
      const answer = judge(error)
      if (answer.is === 'unavailable') rollBack(file)
      reply(answer)
    }
  }
}

class OutOfSpace extends Error {}

/**
 * Checks that the disk has room and that the database and its log are still where they were: what goes to a deleted file
 * is lost. Three system calls for a batch are cheap beside its sync.
 */
function roomOn(path: string, minimumFree: number): () => void {
  const files = [path, `${path}-wal`].map(file => ({ file, inode: inodeOf(file) }))
  return () => {
    for (const { file, inode } of files) {
      if (inodeOf(file) !== inode) throw new Error(`${file} was moved or deleted`)
    }
    const { bavail, bsize } = statfsSync(dirname(path))
    if (bavail * bsize < minimumFree) throw new OutOfSpace(`less than ${minimumFree} bytes are free for ${path}`)
  }
}

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino

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

function rollBack({ database }: SqliteFile): void {
  if (database.isTransaction) database.exec('rollback')
}

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread')
try {
  const handle = serve(workerData as SqliteOptions, message => port.postMessage(message))
  port.on('message', (request: Request) => {
    handle(request)
    if (request.do === 'close') port.close()
  })
  port.postMessage({ is: 'done' } satisfies Reply)
} catch (error) {
  const { message } = error as Error
  port.postMessage({ is: error instanceof CannotOpen ? 'refused' : 'failed', why: message } satisfies Reply)
  port.close()
}

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { type Log, OperatorError } from '../../config/operator.ts'
import { REST } from '../bulk.ts'
import { type Database, StoreUnavailable, type Tx } from '../database.ts'
import { background } from './background.ts'
import { statementsOf, txOn } from './connection.ts'
import { freeFor, MINIMUM_FREE, openForCommand, openForService, reasonOf, type SqliteFile } from './open.ts'
import { logSync } from './sync.ts'
import type { Checkpoint } from './thread.ts'

/** Milliseconds between two tries while a command writes, and for all of them. */
const BUSY_PAUSE = 2
const BUSY_FOR = 4_000
/** Milliseconds for all tries of a command to empty the log. */
const TRUNCATE_FOR = 3_000

/** BUSY and PROTOCOL: another process writes now. */
const isBusy = (error: unknown): boolean => [5, 15].includes(errcodeOf(error) & 0xff)
/** ERROR, CONSTRAINT, MISMATCH, MISUSE, RANGE: our bugs. */
const isBug = (error: unknown): boolean => [0, 1, 19, 20, 21, 25].includes(errcodeOf(error) & 0xff)
/** FULL, and IOERR_WRITE and IOERR_SHMSIZE, which is what SQLite makes of a quota that is used up. Nothing was harmed. */
const isFull = (error: unknown): boolean => [13, 778, 4_874].includes(errcodeOf(error))
/** IOERR, CORRUPT, NOTADB: later commits could look fine and still be lost. */
const isFatal = (error: unknown): boolean => [10, 11, 26].includes(errcodeOf(error) & 0xff) && !isFull(error)
const errcodeOf = (error: unknown): number => (error as { errcode?: number }).errcode ?? 0

/** One transaction after the other, on one connection. */
function connection({ path, database }: SqliteFile, clock: () => number) {
  const statements = statementsOf(database)
  const begin = database.prepare('begin immediate')
  const beginReading = database.prepare('begin')
  const commit = database.prepare('commit')
  const changes = database.prepare('select total_changes() as n')
  let last: Promise<unknown> = Promise.resolve()

  async function attempt<T>(use: (tx: Tx) => Promise<T>, how = begin): Promise<T> {
    how.run()
    try {
      const result = await use(txOn(statements, clock()))
      commit.run()
      return result
    } finally {
      if (database.isTransaction) database.exec('rollback')
    }
  }

  return {
    statements,
    attempt,
    /** Rows that were ever changed. */
    changes: () => (changes.get() as { n: number }).n,
    read: <T>(use: (tx: Tx) => Promise<T>) => attempt(use, beginReading),
    /** Runs `use` when everything before it has ended. */
    inTurn<T>(use: () => Promise<T>): Promise<T> {
      const result = last.then(use)
      last = result.catch(() => {})
      return result
    },
    ended: () => last,
    /** The error for the caller of the store. */
    classifyError(error: unknown): unknown {
      if (isBug(error)) return error
      return new StoreUnavailable(
        `${isFull(error) ? 'the disk is full, or a quota is used up: ' : ''}${reasonOf(path, error)}`,
      )
    },
  }
}

interface SqliteOptions {
  readonly path: string
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

/** Milliseconds of transactions in a row after which everything else in the process gets its turn. */
const LONGEST_TURN = 5
/** Milliseconds between two looks at the length of the log, and at the room on the disk. */
const LOOK_EVERY = 100
const ROOM_EVERY = 250
/** Pages of the log that are worth a checkpoint, and those for which signups wait until there are fewer. */
const WORTHWHILE = 1_000
const HOLD = 8_000
/** Milliseconds until the next hold, if somebody who reads keeps the log from being shortened. */
const HOLD_EVERY = 1_000

/**
 * The database of a running service: statements in the main thread, syncs and long reads beside it.
 *
 * @throws {OperatorError} when the file cannot be used as it is.
 */
export function sqliteDatabase({ path: given, log, clock = Date.now }: SqliteOptions): Database {
  const file = openForService(given, log)
  const { path, database } = file
  const { statements, attempt, changes, inTurn, ended, classifyError } = connection(file, clock)
  const failure = Promise.withResolvers<Error>()
  let failed: Error | undefined
  function fail(error: unknown): void {
    failed ??= new Error(`${path}: ${reasonOf(path, error)}`)
    failure.resolve(failed)
  }
  const sync = logSync(file.logDescriptor, file.requireFiles, fail)
  const beside = background({ path, descriptor: file.descriptor }, txOn(statements, 0), clock)
  const length = database.prepare('pragma wal_checkpoint(noop)')
  let lookAt = 0
  let holdAt = 0
  let mustEmpty = false
  let shortening: Promise<number> | null = null
  let turnBegan: number | null = null
  let roomAt = 0
  let hasRoom = true
  let changed = changes()
  let closed: Promise<void> | undefined

  function shorten(how: Checkpoint): Promise<number> {
    shortening ??= beside
      .checkpoint(how)
      .catch(error => {
        if (isFatal(error)) fail(error)
        return Number.POSITIVE_INFINITY
      })
      .finally(() => {
        shortening = null
      })
    return shortening
  }

  /** No transaction begins until it ends. */
  async function hold(): Promise<void> {
    await shortening
    const left = await shorten(mustEmpty ? 'truncate' : 'restart')
    if (left === 0) mustEmpty = false
    else holdAt = performance.now() + HOLD_EVERY
  }

  /** On a full disk: gives back what the log takes. */
  function makeRoom(): void {
    if (performance.now() < holdAt) return
    holdAt = performance.now() + HOLD_EVERY
    void shorten('truncate')
  }

  /** Has the log shortened beside the signups; when that does not suffice, they wait for it. */
  async function boundLog(): Promise<void> {
    const now = performance.now()
    if (now < lookAt) return
    lookAt = now + LOOK_EVERY
    const { log: pages, checkpointed } = length.get() as { log: number; checkpointed: number }
    if ((mustEmpty || pages > HOLD) && now >= holdAt && !beside.isReading()) await hold()
    else if (pages - checkpointed >= WORTHWHILE) void shorten('passive')
  }

  /** Nothing else runs between transactions that wait for nothing. */
  async function takeTurn(): Promise<void> {
    if (turnBegan !== null && performance.now() - turnBegan > LONGEST_TURN) await nextTurn()
    if (turnBegan !== null) return
    turnBegan = performance.now()
    setImmediate(() => {
      turnBegan = null
    })
  }

  async function tried<T>(use: (tx: Tx) => Promise<T>): Promise<T> {
    const until = performance.now() + BUSY_FOR
    await takeTurn()
    for (;;) {
      try {
        await boundLog()
        return await attempt(use)
      } catch (error) {
        if (isFatal(error)) fail(error)
        if (isFull(error)) makeRoom()
        if (!isBusy(error) || performance.now() > until) throw classifyError(error)
        await sleep(BUSY_PAUSE)
      }
    }
  }

  function requireTrust(): void {
    if (failed !== undefined) throw new StoreUnavailable(failed.message)
  }

  function requireOpen(): void {
    requireTrust()
    if (closed !== undefined) throw new StoreUnavailable('the store is closed')
  }

  return {
    name: `sqlite:${path}`,
    async transaction(use) {
      requireOpen()
      const result = await inTurn(async () => {
        const result = await tried(use)
        const before = changed
        changed = changes()
        if (changed !== before) sync.committed()
        return result
      })
      await sync.wait()
      requireTrust()
      return result
    },
    async read(use) {
      requireOpen()
      const result = await beside.read(use)
      await sync.wait()
      requireTrust()
      return result
    },
    failure: failure.promise,
    requireRoom() {
      const now = performance.now()
      if (now >= roomAt) {
        roomAt = now + ROOM_EVERY
        try {
          file.requireFiles()
        } catch (error) {
          fail(error)
        }
        requireOpen()
        hasRoom = freeFor(path) >= MINIMUM_FREE
        if (!hasRoom) makeRoom()
      }
      if (!hasRoom) throw new StoreUnavailable(`less than ${MINIMUM_FREE} bytes are free for ${path}`)
    },
    async truncateWal() {
      mustEmpty = true
      // While somebody reads, it is done later.
      await inTurn(async () => {
        if (mustEmpty && !beside.isReading()) await hold()
      })
    },
    close() {
      closed ??= (async () => {
        await ended()
        await sync.wait().catch(() => {})
        await shortening
        await beside.close()
        file.close()
      })()
      return closed
    },
  }
}

/**
 * The database of a command, beside a service or without one. Every commit is synced by itself.
 *
 * @throws {OperatorError} when there is none, unless it may be made, or it is not ours.
 */
export function sqliteForCommand(given: string, { make = false } = {}): Database {
  const file = openForCommand(given, { make })
  const { path } = file
  const { attempt, read, inTurn, ended, classifyError } = connection(file, Date.now)
  const classified = <T>(result: Promise<T>): Promise<T> =>
    result.catch(error => {
      throw classifyError(error)
    })
  return {
    name: `sqlite:${path}`,
    transaction: use => classified(inTurn(() => attempt(use))),
    read: use => classified(inTurn(() => read(use))),
    failure: new Promise(() => {}),
    requireRoom() {
      if (freeFor(path) < MINIMUM_FREE)
        throw new OperatorError('less than 64 MiB are free. Make room, and run the same command again')
    },
    async truncateWal() {
      // In short tries, since nobody can write during one.
      file.database.exec('pragma busy_timeout = 100')
      for (const until = performance.now() + TRUNCATE_FOR; performance.now() < until; await sleep(REST)) {
        if (file.database.prepare('pragma wal_checkpoint(truncate)').get()!.busy === 0) return
      }
      throw new OperatorError(
        `It is erased, but still in ${path}-wal, since another process reads the database: it is gone at the next start.`,
      )
    },
    async close() {
      await ended()
      file.close()
    },
  }
}

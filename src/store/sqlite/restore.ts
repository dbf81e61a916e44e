import { existsSync, linkSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../config/operator.ts'
import { ERASURE, reconcileRestored } from '../erasures.ts'
import { requireIntact, requireNoLog } from './backup.ts'
import { statementsOf, txOn } from './connection.ts'
import { createPrivately, syncPath } from './files.ts'
import { lockFile, requireOwnSchema } from './open.ts'

interface Restored {
  readonly contacts: number
  /** Contacts that were erased since the backup, and were taken out. */
  readonly erased: number
  /** Waiting deliveries, which are in doubt now. */
  readonly doubtful: number
  /** The file that was there before; null: there was none. */
  readonly kept: string | null
}

/**
 * Puts a backup in the place of a database. At every moment there is a whole database at `path`, the old one or the new one.
 * A backup does not know what happened after it was made: the erasures of the old database are applied to it.
 *
 * @throws {OperatorError} when either cannot be used, or a service runs; nothing was changed then.
 */
export async function restore(given: string, backup: string): Promise<Restored> {
  if (!existsSync(backup)) throw new OperatorError(`There is no file ${backup}.`)
  const lock = lockFile(given)
  const { path } = lock
  const unfinished = `${path}.unfinished-restore`
  try {
    const isThere = existsSync(path)
    if (isThere && path === realpathSync(backup))
      throw new OperatorError(`${backup} is the database itself. Name a backup of it.`)
    rmSync(unfinished, { force: true })
    copy(backup, unfinished, isThere ? path : dirname(path))
    if (isThere) closeOff(path)
    else requireNoLog(path)
    const result = await reconcile(unfinished, isThere ? path : null)
    requireIntact(unfinished)
    syncPath(unfinished)
    const kept = isThere ? `${path}.before-restore-${new Date().toISOString().replaceAll(/[:.]/g, '-')}` : null
    if (kept !== null) linkSync(path, kept)
    renameSync(unfinished, path)
    syncPath(dirname(path))
    return { ...result, kept }
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${backup} cannot be restored: ${(error as Error).message}. ${path} is as it was.`)
  } finally {
    rmSync(unfinished, { force: true })
    lock.close()
  }
}

/** Takes what is in the log of the backup along, if it has one, and fails where it is damaged. */
function copy(backup: string, unfinished: string, like: string): void {
  const source = new DatabaseSync(backup, { readOnly: true, timeout: 1_000 })
  try {
    requireOwnSchema(source, backup)
    if (source.prepare("select 1 from sqlite_schema where name = 'contact'").get() === undefined)
      throw new OperatorError(`${backup} is no backup: it has no waitlist.`)
    createPrivately(unfinished, like)
    source.prepare('vacuum into ?').run(unfinished)
  } finally {
    source.close()
  }
}

/**
 * Brings the log into the database, so that one file is all of it.
 *
 * @throws {OperatorError} when somebody else has it open, or it is damaged, so that nobody knows who was erased there.
 */
function closeOff(path: string): void {
  try {
    const database = new DatabaseSync(path, { timeout: 1_000 })
    try {
      requireOwnSchema(database, path)
      // Leaving WAL mode fails if anybody else has it open.
      database.exec('pragma journal_mode = delete')
    } finally {
      database.close()
    }
    requireIntact(path)
  } catch (error) {
    if (error instanceof OperatorError) throw error
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === 5)
      throw new OperatorError(`${path} is in use: an export, another command or a shell has it open. End that first.`)
    throw new OperatorError(
      `${path} is damaged (${(error as Error).message}), so nobody knows who was erased there. Move it away, with its log, and run the command again.`,
    )
  }
}

/** Nobody has this file yet, and an unfinished one is thrown away. */
async function reconcile(unfinished: string, old: string | null): Promise<Omit<Restored, 'kept'>> {
  const database = new DatabaseSync(unfinished)
  try {
    database.exec(
      'pragma journal_mode = off; pragma synchronous = off; pragma foreign_keys = on; pragma secure_delete = on',
    )
    if (old !== null) carryErasuresOver(database, old)
    const statements = statementsOf(database)
    const { erased, doubtful } = await reconcileRestored(txOn(statements, Date.now()))
    const [row] = statements.all('select count(*) as contacts from contact') as unknown as readonly {
      contacts: number
    }[]
    return { contacts: row!.contacts, erased, doubtful }
  } finally {
    database.close()
  }
}

/** Hashes that were made under another secret are of no use, and go. */
function carryErasuresOver(database: DatabaseSync, old: string): void {
  database.prepare('attach ? as old').run(old)
  const secretIn = (place: string) =>
    database.prepare(`select value from ${place}.secret where name = ?`).get(ERASURE)?.value
  const secret = secretIn('old')
  if (secret !== undefined) {
    if (secretIn('main') !== secret) database.exec('delete from main.erased')
    database.prepare('insert or replace into main.secret (name, value) values (?, ?)').run(ERASURE, secret)
    database.exec('insert or replace into main.erased select * from old.erased')
  }
  database.exec('detach old')
}

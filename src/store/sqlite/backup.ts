import { existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../config/operator.ts'
import { writeAtomically } from '../atomic.ts'
import { ERASURE, reconcileRestored } from '../erasures.ts'
import { statementsOf, txOn } from './connection.ts'
import { giveToOwner, lockFile, openForCommand, requireOurs, syncPath } from './open.ts'

interface BackedUp {
  readonly contacts: number
  /** Bytes. */
  readonly size: number
}

/**
 * Copies a snapshot of a database file to `target`, checked and synced. It is one transaction, during which the service cannot
 * shorten its log. Copying the file itself would miss what is in the log.
 *
 * @throws {OperatorError} when there is no such database, or the copy cannot be made; nothing is left of it then.
 */
export async function backUp(path: string, target: string): Promise<BackedUp> {
  const { database, close } = openForCommand(path)
  try {
    return await writeAtomically(target, async unfinished => {
      requireNoLog(target)
      database.prepare('vacuum into ?').run(unfinished)
      using copy = new DatabaseSync(unfinished)
      return { contacts: countIntact(copy), size: statSync(unfinished).size }
    })
  } finally {
    close()
  }
}

interface Restored {
  readonly contacts: number
  /** Contacts that were erased since the backup, and were taken out. */
  readonly erased: number
  /** The file that was there before; null: there was none. */
  readonly kept: string | null
}

/**
 * Puts a backup in the place of a database. At every moment there is a whole database at `path`, the old one or the new one.
 * A backup does not know what happened after it was made: the erasures of the old database are applied to it.
 *
 * @throws {OperatorError} when either cannot be used, or somebody uses the old one; nothing was changed then.
 */
export async function restore(given: string, backup: string): Promise<Restored> {
  const lock = lockFile(given)
  const { path } = lock
  const unfinished = `${path}.unfinished-restore`
  try {
    const isThere = existsSync(path)
    rmSync(unfinished, { force: true })
    copy(backup, unfinished)
    if (isThere) bringLogIn(path)
    else requireNoLog(path)
    const result = await bringUpToDate(unfinished, isThere ? path : null)
    giveToOwner(unfinished)
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

/** What is in the log of the backup, if it has one, is copied, too. */
function copy(backup: string, unfinished: string): void {
  using source = new DatabaseSync(backup, { readOnly: true })
  if (requireOurs(source, backup) === 'empty') throw new Error('it is empty')
  source.prepare('vacuum into ?').run(unfinished)
}

/** One file is then all of the database. It fails if anybody else has it open, who could write to the log. */
function bringLogIn(path: string): void {
  try {
    using database = new DatabaseSync(path)
    requireOurs(database, path)
    database.exec('pragma journal_mode = delete')
  } catch (error) {
    const { message } = error as Error
    throw new OperatorError(
      `${path} is in use, or damaged: ${message}. End what uses it, or move it away with its log.`,
    )
  }
}

/** The file is not in use yet, and an unfinished one is deleted. */
async function bringUpToDate(unfinished: string, old: string | null): Promise<Omit<Restored, 'kept'>> {
  using database = new DatabaseSync(unfinished)
  database.exec('pragma journal_mode = off; pragma synchronous = off; pragma secure_delete = on')
  if (old !== null) carryErasuresOver(database, old)
  const erased = await reconcileRestored(txOn(statementsOf(database), Date.now()))
  return { contacts: countIntact(database), erased }
}

/** Hashes are of use with the secret alone under which they were made. */
function carryErasuresOver(database: DatabaseSync, old: string): void {
  database.prepare('attach ? as old').run(old)
  database.exec(`
    insert or replace into main.secret select * from old.secret where name = '${ERASURE}';
    insert or replace into main.erased select * from old.erased;
    detach old
  `)
}

/** @throws when the log of another database of that name is there, which SQLite would apply to this one. */
function requireNoLog(path: string): void {
  const log = `${path}-wal`
  if (existsSync(log)) throw new OperatorError(`${log} was left by another database of that name. Move it away.`)
}

/** Returns how many contacts there are. @throws when SQLite finds damage. */
function countIntact(database: DatabaseSync): number {
  const { integrity_check: result } = database.prepare('pragma integrity_check(1)').get()!
  if (result !== 'ok') throw new Error(`it is damaged: ${result}`)
  return Number(database.prepare('select count(*) as n from contact').get()!.n)
}

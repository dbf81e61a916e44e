import { chmodSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../waitlist/ports/log.ts'
import type { BackedUp } from '../operator/copies.ts'
import { removeLeftovers, unfinishedName } from '../unfinished.ts'
import { createPrivately, openForReading, sync } from './schema.ts'

/**
 * Copies a snapshot of a database file to `target`, where it appears only when it is complete, checked and synced. Copying
 * the file itself would miss what is in the log.
 *
 * It is one transaction, during which the service cannot shorten its log, but which takes no longer than the disk does.
 * The backup API would read page by page, and start over with each signup that the service stores: it might never end.
 *
 * @throws {OperatorError} when there is no such database, or the copy cannot be made; nothing is left of it then.
 */
export function backUp(path: string, target: string): BackedUp {
  if (existsSync(target)) throw new OperatorError(`${target} exists already. A backup never overwrites a file.`)
  const database = openForReading(path)
  const unfinished = unfinishedName(target, 'backup')
  try {
    removeLeftovers(dirname(target))
    // SQLite writes to a file that is empty, and would make one that everybody can read.
    createPrivately(unfinished)
    database.prepare('vacuum into ?').run(unfinished)
    const [contacts, { size }] = [contactsIn(unfinished), statSync(unfinished)]
    publish(unfinished, target)
    return { contacts, size }
  } catch (error) {
    throw new OperatorError(`${path} cannot be copied to ${target}: ${(error as Error).message}`)
  } finally {
    database.close()
    rmSync(unfinished, { force: true })
  }
}

function contactsIn(path: string): number {
  const database = openForReading(path)
  try {
    return (database.prepare('select count(*) as n from contact').get() as { n: number }).n
  } finally {
    database.close()
  }
}

/**
 * Renames a complete, closed database file. Before that it is checked, synced and made readable by this user alone.
 *
 * @throws when an earlier database of that name left its log: SQLite would apply it to this one.
 */
export function publish(unfinished: string, target: string): void {
  requireNoLog(target)
  complete(unfinished)
  renameSync(unfinished, target)
  sync(dirname(resolve(target)))
}

/** Checks a closed database file, makes it readable by this user alone, and syncs it. */
export function complete(unfinished: string): void {
  chmodSync(unfinished, 0o600)
  requireIntact(unfinished)
  sync(unfinished)
}

export function requireNoLog(target: string): void {
  const left = ['-wal', '-journal'].map(ending => target + ending).find(existsSync)
  if (left !== undefined) throw new Error(`${left} was left by another database of that name; remove it`)
}

function requireIntact(path: string): void {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const result = database.prepare('pragma integrity_check(1)').get() as { integrity_check: string }
    if (result.integrity_check !== 'ok') throw new Error(`the copy is damaged: ${result.integrity_check}`)
  } finally {
    database.close()
  }
}

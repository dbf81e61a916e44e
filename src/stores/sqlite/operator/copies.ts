import { chmodSync, existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../../waitlist/ports.ts'
import type { Copies } from '../../operator/copies.ts'
import { createPrivately, sync } from '../schema.ts'
import { openForReading } from './open.ts'

export const copies = (path: string): Copies => ({
  backUp: async target => backUp(path, target),
})

/**
 * Copies a snapshot of a database file to `target`, where it appears only when it is complete, checked and synced. Copying
 * the file itself would miss what is in the log.
 *
 * It is one transaction, during which the service cannot shorten its log, but which takes no longer than the disk does.
 * The backup API would read page by page, and start over with each signup that the service stores: it might never end.
 *
 * @throws {OperatorError} when there is no such database, or the copy cannot be made; nothing is left of it then.
 */
function backUp(path: string, target: string): void {
  if (existsSync(target)) throw new OperatorError(`${target} exists already. A backup never overwrites a file.`)
  const database = openForReading(path)
  const unfinished = `${target}${UNFINISHED}${process.pid}`
  try {
    removeLeftovers(dirname(target))
    // SQLite writes to a file that is empty, and would make one that everybody can read.
    createPrivately(unfinished)
    database.prepare('vacuum into ?').run(unfinished)
    publish(unfinished, target)
  } catch (error) {
    throw new OperatorError(`${path} cannot be copied to ${target}: ${(error as Error).message}`)
  } finally {
    database.close()
    rmSync(unfinished, { force: true })
  }
}

/** Before the id of the process that makes the copy. */
const UNFINISHED = '.unfinished-backup-'

/**
 * Removes what killed backups have left in a folder: personal data that nobody would look for. Two containers that make
 * copies in one folder at the same time do not see each other's process, and one of the copies fails.
 */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, , pid] = /^(.+)\.unfinished-backup-(\d+)(?:-journal)?$/.exec(name) ?? []
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true })
  }
}

/** If it is our own id, as often in a container, the process that left the file was there before us. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * Renames a complete, closed database file. Before that it is checked, synced and made readable by this user alone.
 *
 * @throws when an earlier database of that name left its log: SQLite would apply it to this one.
 */
export function publish(unfinished: string, target: string): void {
  requireNoLog(target)
  chmodSync(unfinished, 0o600)
  requireIntact(unfinished)
  sync(unfinished)
  renameSync(unfinished, target)
  sync(dirname(resolve(target)))
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

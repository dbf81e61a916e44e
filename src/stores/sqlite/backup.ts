import { existsSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { OperatorError } from '../../waitlist/ports/log.ts'
import type { BackedUp } from '../operator/copies.ts'
import { removeLeftovers, unfinishedName } from '../unfinished.ts'
import { publish } from './publish.ts'
import { createPrivately, openForReading } from './schema.ts'

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

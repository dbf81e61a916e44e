import { chmodSync, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CannotOpen } from '../../waitlist/ports.ts'
import { sync } from './file.ts'
import { openForReading } from './reader.ts'

/**
 * Copies a database file to `target` as it stands at one moment; a service that uses it goes on. The copy appears under
 * its name only when it is complete, checked and synced. Copying the file itself would miss what is in the log.
 *
 * @throws {CannotOpen} when there is no such database, or the copy cannot be made; nothing is left of it then.
 */
export function backUp(path: string, target: string): void {
  if (existsSync(target)) throw new CannotOpen(`${target} exists already. A backup never overwrites a file.`)
  const database = openForReading(path)
  const unfinished = `${target}.unfinished-${process.pid}`
  try {
    database.prepare('vacuum into ?').run(unfinished)
    chmodSync(unfinished, 0o600)
    requireIntact(unfinished)
    sync(unfinished)
    renameSync(unfinished, target)
    sync(dirname(resolve(target)))
  } catch (error) {
    throw new CannotOpen(`${path} cannot be copied to ${target}: ${(error as Error).message}`)
  } finally {
    database.close()
    rmSync(unfinished, { force: true })
  }
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

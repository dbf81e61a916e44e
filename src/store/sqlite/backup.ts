import { existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../config/operator.ts'
import { writeAtomically } from '../atomic.ts'
import { openForCommand } from './open.ts'

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
  const file = openForCommand(path)
  try {
    return await writeAtomically(target, async unfinished => {
      requireNoLog(target)
      file.database.prepare('vacuum into ?').run(unfinished)
      requireIntact(unfinished)
      return { contacts: countIn(unfinished), size: statSync(unfinished).size }
    })
  } finally {
    file.close()
  }
}

const reading = <T>(path: string, text: string): T => {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    return database.prepare(text).get() as T
  } finally {
    database.close()
  }
}

const countIn = (path: string): number => reading<{ n: number }>(path, 'select count(*) as n from contact').n

/** @throws {OperatorError} when the log of another database of that name is there, which SQLite would apply to this one. */
export function requireNoLog(path: string): void {
  const log = ['-wal', '-journal'].map(ending => path + ending).find(existsSync)
  if (log !== undefined) throw new OperatorError(`${log} was left by another database of that name. Move it away.`)
}

/** @throws when SQLite finds damage in the file. */
export function requireIntact(path: string): void {
  const { integrity_check: result } = reading<{ integrity_check: string }>(path, 'pragma integrity_check(1)')
  if (result !== 'ok') throw new Error(`${path} is damaged: ${result}`)
}

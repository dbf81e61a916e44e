import { chmodSync, existsSync, renameSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sync } from './schema.ts'

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

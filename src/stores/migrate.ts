import { readdirSync, readFileSync } from 'node:fs'
import { OperatorError } from '../waitlist/ports/log.ts'

/** One numbered step of a schema: `0001.sql`. */
export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

/**
 * Reads a folder of migrations. They are numbered from 1 without a gap. A released step is never edited; a later one
 * corrects it.
 */
export function readMigrations(folder: URL): readonly Migration[] {
  const names = readdirSync(folder)
    .filter(name => name.endsWith('.sql'))
    .sort()
  return names.map((name, index) => {
    const number = Number.parseInt(name, 10)
    if (number !== index + 1) throw new Error(`migration ${name} should have the number ${index + 1}`)
    return { number, name, sql: readFileSync(new URL(name, folder), 'utf8') }
  })
}

/**
 * The steps that a store with schema version `current` still needs.
 *
 * @throws {OperatorError} when the store is newer than this program, which must then leave it alone.
 */
export function pendingMigrations(
  migrations: readonly Migration[],
  current: number,
  store: string,
): readonly Migration[] {
  const known = migrations.length
  if (current > known) {
    throw new OperatorError(
      `${store} was written by a newer Waitlist (its schema has version ${current}, this program knows ${known}). ` +
        'Start the newer program, or restore a copy that was made before the upgrade.',
    )
  }
  return migrations.slice(current)
}

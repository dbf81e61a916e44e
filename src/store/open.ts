import { type Log, OperatorError } from '../config/operator.ts'
import { type Database, StoreUnavailable } from './database.ts'
import type { StoreLocation } from './location.ts'

/** Opens databases. Only the engine that is used is loaded. */

/** @throws {OperatorError} when it cannot be used as it is. */
export async function openDatabase(location: StoreLocation, log: Log, clock?: () => number): Promise<Database> {
  if (location.kind === 'sqlite') {
    const { sqliteDatabase } = await import('./sqlite/database.ts')
    return sqliteDatabase({ path: location.path, log, ...(clock && { clock }) })
  }
  const { postgresDatabase } = await import('./postgres/open.ts')
  return postgresDatabase({ url: location.url, log, clock })
}

/**
 * Opens the database for as long as a command uses it, beside services or without one. `make`: if there is none, it is made.
 *
 * @throws {OperatorError} when it cannot be used as it is.
 */
export async function withDatabase<T>(
  location: StoreLocation,
  use: (database: Database) => Promise<T>,
  options: { readonly make?: boolean } = {},
): Promise<T> {
  const database =
    location.kind === 'sqlite'
      ? (await import('./sqlite/database.ts')).sqliteForCommand(location.path, options)
      : await (await import('./postgres/open.ts')).postgresForCommand(location.url, options)
  try {
    return await use(database)
  } catch (error) {
    throw error instanceof StoreUnavailable
      ? new OperatorError(`${database.name} cannot be used: ${error.message}`)
      : error
  } finally {
    await database.close()
  }
}

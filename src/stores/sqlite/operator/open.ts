import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../../waitlist/ports/log.ts'
import { reasonOf } from '../rights.ts'
import { requireReleased } from '../schema.ts'

/** @throws {OperatorError} when there is no such file, or it is not ours. */
export function openForReading(path: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    statSync(path)
    database = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
    requireReleased(database, path)
    return database
  } catch (error) {
    database?.close()
    if (error instanceof OperatorError) throw error
    if (['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))) {
      throw new OperatorError(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
    }
    throw new OperatorError(`${path} cannot be read: ${reasonOf(path, error)}`)
  }
}

/** Opening for writing would create a missing file; opening for reading refuses it with a sentence. */
export function openForWriting(path: string): DatabaseSync {
  openForReading(path).close()
  return new DatabaseSync(path, { timeout: 5000 })
}

/** @throws {OperatorError} when the file cannot be used. */
export async function lend<T>(
  path: string,
  database: DatabaseSync,
  use: (database: DatabaseSync) => T | Promise<T>,
): Promise<T> {
  try {
    return await use(database)
  } catch (error) {
    throw cannotUse(path, error)
  } finally {
    database.close()
  }
}

export const cannotUse = (path: string, error: unknown) =>
  new OperatorError(`${path} cannot be used: ${reasonOf(path, error)}`)

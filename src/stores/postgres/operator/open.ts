import { type Log, OperatorError } from '../../../waitlist/ports/log.ts'
import { storeName } from '../../location.ts'
import { type Postgres, postgres, type Query } from '../client.ts'
import { reasonOf } from '../errors.ts'
import { isCurrent } from '../schema.ts'

const silent: Log = { info() {}, warn() {}, error() {} }

/** Milliseconds for one statement. No visitor waits for it, and tables may be large. */
export const STATEMENT = 60_000

export const open = (url: string): Postgres => postgres({ url, connections: 1, timeout: STATEMENT, log: silent })

export const nameOf = (url: string): string => storeName({ kind: 'postgres', url })

/** @throws {OperatorError} when the database cannot be reached or has no schema that this program knows. */
export async function lend<T>(url: string, use: (database: Postgres) => Promise<T>): Promise<T> {
  const database = open(url)
  try {
    await database.lend(client => isCurrent(client, nameOf(url)))
    return await use(database)
  } catch (error) {
    throw cannotUse(url, error)
  } finally {
    await database.close()
  }
}

/** If the tables are missing (42P01), the service has never run on this database. */
export function cannotUse(url: string, error: unknown): OperatorError {
  if (error instanceof OperatorError) return error
  const missing = (error as { code?: string }).code === '42P01'
  const why = missing ? 'it has no waitlist. Start the service once, which makes its tables' : reasonOf(error)
  return new OperatorError(`${nameOf(url)} cannot be used: ${why}`)
}

/** Not tried again: a second try would not know what the first one has replayed. */
export const once =
  ({ attempt }: Postgres): Query =>
  (text, values) =>
    attempt((query, again) => {
      if (again)
        throw new OperatorError('The connection was lost before the answer came. Some may be due now: run it again.')
      return query(text, values)
    })
